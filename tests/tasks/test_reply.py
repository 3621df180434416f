from __future__ import annotations

import subprocess
import sys

import numpy as np

from tiebreak.tasks.reply import Answer, AttentionWeights, Reply


def test_a_reply_needs_answers_only() -> None:
    reply = Reply(answers=[Answer(text="cat", probability=0.7), Answer(text="dog")])
    assert reply.note == ""
    assert reply.attention is None
    assert [answer.probability for answer in reply.answers] == [0.7, None]


def test_attention_has_a_row_for_each_symbol_of_the_answer() -> None:
    attention = AttentionWeights(weights=np.eye(2, dtype=np.float32), rows=("a", ">"), columns=("x", "y"))
    assert attention.weights.shape == (len(attention.rows), len(attention.columns))


def test_the_terminal_can_show_it_without_torch() -> None:
    code = "import sys, tiebreak.tasks.reply; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
