"""Training: functions of a run, its state and the data. They are written for one run; `fused` maps them over many."""
