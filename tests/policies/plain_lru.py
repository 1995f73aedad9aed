"""Per-layer LRU with fetch in plain Python: the template of a user's policy, and a second opinion
on the compiled one."""

from policies.api import FETCH, GPU, STREAM, Copy, LayerPlan


class PlainLru:
    """Residents first; victims are the layer's own least recently used experts that this pass does
    not need."""

    name = "plain_lru"
    needs = frozenset()

    def parameters(self):
        return {}

    def reset(self, shape, costs):
        self.shape = shape
        self.number = -1
        self.stamp = {}
        share, rest = divmod(shape.slots, shape.layers)
        self.quota = [share + (layer < rest) for layer in range(shape.layers)]

    def start_request(self, prompt):
        pass

    def start_pass(self, last_token):
        self.number += 1
        return self.shape.gamma_max

    def draft_step(self, step, token, view):
        return ()

    def leave_layer(self, layer, view):
        return ()

    def end_pass(self, accepted):
        pass

    def enter_layer(self, routing, view):
        base = routing.layer * self.shape.experts
        rows = {}
        for expert in routing.experts.ravel():
            rows[int(expert)] = rows.get(int(expert), 0) + 1
        for expert in rows:
            self.stamp[base + expert] = self.number
        placement, demand = {}, []
        for expert in sorted(rows):
            if view.ready(base + expert):
                placement[expert] = GPU
            elif view.filling(base + expert):
                placement[expert] = FETCH
                demand.append(Copy(base + expert, -1))
        held = [k for k in range(base, base + self.shape.experts) if view.expert_slot[k] >= 0]
        free = [slot for slot in range(len(view.slot_state)) if view.slot_state[slot] == 0]
        spare = [k for k in held if view.ready(k) and k - base not in rows]
        spare.sort(key=lambda key: (self.stamp.get(key, 0), self.stamp.get(key, -1), key))
        room = max(0, self.quota[routing.layer] - len(held))
        for expert in sorted(set(rows) - set(placement), key=lambda e: (-rows[e], e)):
            if room > 0 and free:
                room -= 1
                slot = free.pop(0)
            elif spare:
                slot = int(view.expert_slot[spare.pop(0)])
            else:
                placement[expert] = STREAM
                demand.append(Copy(base + expert, -1))
                continue
            placement[expert] = FETCH
            demand.append(Copy(base + expert, slot))
        return LayerPlan(placement, tuple(demand))
