"""Simulator of offloaded Mixture-of-Experts decoding: profiles, cost tables, engine, bounds.

The machine, which every engine plays to the nanosecond:

- One clock per run; requests, passes and layers follow each other without a gap.
- Drafting: gamma steps on the GPU. After each, the session is asked with the pool as it is at the
  step's end. Steps never wait for decisions.
- Layer: t0 = previous join; t1 = t0 + dense(rows, context) + router, context = tokens before the
  window. The session sees the pool at t0. t2 = max(t1 + d2h + priced needs, host free) + decision.
- Host: one thread, decisions in program order: draft steps, start and end of layers. The copies of
  a decision enter the link when it is over. With early launch a layer may join before its t2; the
  host then lags behind.
- Link: first in, first out, one copy at a time, latency + bytes / rate each. A stream waits for the
  expert before it in its staging buffer, and what is queued behind it waits too. Streams of a layer
  take the buffers in turn.
- GPU lane: residents from t1 (early launch) or t2 (late), then fetched and streamed experts in
  landing order, none before t2 or its landing. Serial lanes: all of them after the CPU's results.
- CPU lane: all CPU experts of a layer are one piece of work W from t2 + dispatch on. It ends at the
  first ns with 1024 * idle + q * busy >= 1024 * W, counted from its begin, where busy is time in
  which bytes move on the link. Its results are back return_ns later.
- Join = the later of the GPU's end and the CPU's results, among those that have work. Then the
  session is asked again, with the pool at the join; that decision holds up nothing but the host.
- After the last layer comes the head (pass_ns), with the link still running.
- Prefill: one pass of all prompt rows beside the session; per expert the shorter of CPU time and
  copy + GPU time, alone and without contention. No decision time. Slots are neither used nor
  changed.
"""
