"""One file a family: loss, evaluation, metrics, and the options a study may change."""
