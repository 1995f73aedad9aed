"""Which choices of a pass go to which expert."""

import numpy as np


def group_choices(experts: np.ndarray) -> dict[int, list[int]]:
    """experts int [rows, k] -> by expert, ascending: the numbers row * k + place of the choices
    that fell on it, ascending.

    Plain lists: for the few rows of a window one array operation costs more than all of this.
    """
    groups: dict[int, list[int]] = {}
    for choice, expert in enumerate(experts.ravel().tolist()):
        if expert in groups:
            groups[expert].append(choice)
        else:
            groups[expert] = [choice]
    return dict(sorted(groups.items()))
