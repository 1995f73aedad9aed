"""RequestSubset: some requests of a replay, as a replay of its own."""

from collections.abc import Sequence

from traces.replay import Replay


class RequestSubset:
    """See traces.replay.Replay, to which all but the list of requests is left."""

    def __init__(self, replay: Replay, request_ids: Sequence[int]) -> None:
        unknown = set(request_ids) - set(replay.request_ids)
        if unknown:
            raise ValueError(f"requests {sorted(unknown)} are not in the replay")
        self.request_ids = tuple(request_ids)
        self.model, self.kind, self.columns = replay.model, replay.kind, replay.columns
        self.gamma_limit, self.fixed_gamma = replay.gamma_limit, replay.fixed_gamma
        self.approximate = replay.approximate
        self.prompt, self.prefill = replay.prompt, replay.prefill
        self.prompt_length = replay.prompt_length
        self.first, self.end = replay.first, replay.end
        self.window, self.arrays = replay.window, replay.arrays


def split_requests(
    request_ids: Sequence[int], held_out: float
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(fit, held out), spread evenly: request i is held out where i * held_out passes a whole
    number, so that drift over the trace meets both sides alike."""
    fit: list[int] = []
    held: list[int] = []
    for place, request in enumerate(request_ids):
        passes_one = int((place + 1) * held_out + 1e-9) > int(place * held_out + 1e-9)
        (held if passes_one else fit).append(request)
    return tuple(fit), tuple(held)
