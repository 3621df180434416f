from __future__ import annotations

import pytest
import torch

from tiebreak.errors import TiebreakError
from tiebreak.models.global_settings import SETTINGS, one_thread, unchanged_settings


def test_a_changed_setting_is_refused_by_name_and_undone() -> None:
    with pytest.raises(TiebreakError, match=r"torch\.set_default_dtype"), unchanged_settings():
        torch.set_default_dtype(torch.float64)
    assert torch.get_default_dtype() == torch.float32


def _change_and_raise() -> None:
    torch.set_default_dtype(torch.float64)
    raise TypeError


def test_an_error_inside_is_not_hidden_and_the_setting_is_undone() -> None:
    with pytest.raises(TypeError), unchanged_settings():
        _change_and_raise()
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_set_to_what_it_is(name: str) -> None:
    read, write = SETTINGS[name]
    before = read()
    write(before)
    assert read() == before


def test_one_thread_is_for_a_while() -> None:
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
