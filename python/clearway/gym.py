"""Environments of Gymnasium over a congestion control of one's own, for controllers that learn: `pip install
clearway[gym]`.

The simulator runs on the calling thread to the next decision, and no further: see `ControlEnv`.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

try:
    import gymnasium
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
except ImportError as error:
    raise ImportError("clearway.gym needs Gymnasium: pip install clearway[gym]") from error

from clearway import _core
from clearway.errors import ScenarioError
from clearway.programs import outside
from clearway.results.result import Result
from clearway.running.run import result_of
from clearway.scenarios.control import Control
from clearway.scenarios.forecast import memory_bytes_max
from clearway.scenarios.scenario import Scenario, scenario_of

if TYPE_CHECKING:
    from clearway._core import AckEvent, CongestionEvent, SentEvent, StartEvent

    # Gymnasium's are generic for type checkers alone in some versions.
    _Env = gymnasium.Env[npt.NDArray[np.float32], npt.NDArray[np.float32]]
else:
    _Env = gymnasium.Env

Observation = npt.NDArray[np.float32]
"""Eight numbers: see `ControlEnv`."""

_MS_PS = 1_000_000_000
_US_PS = 1_000_000
_ENDLESS = 2**63
_LEAST = np.asarray([0, 0, 0, -1, -1, 0, 0, 0], np.float32)
_MOST = np.asarray([1e9, 1, 1, 1e9, 1e9, 40, 1e9, 1], np.float32)


@dataclass(frozen=True)
class Interval:
    """The observations of a flow since its last decision, and its state. Times are picoseconds."""

    flow: int
    now_ps: int
    interval_ps: int
    window_bytes: int
    mss_bytes: int
    acked_bytes: int
    marked_bytes: int
    delivered_bytes: int
    lost_bytes: int
    in_flight_bytes: int
    rtt_min_ps: int | None
    """The least round trip of the interval; None if none was measured."""
    srtt_ps: int
    base_rtt_ps: int
    """The round trip over as many switches in an idle network."""
    timed_out: bool
    best_bytes: int
    """The most that an interval of this flow has delivered so far."""

    def observation(self) -> Observation:
        """As an agent sees it."""
        base = self.base_rtt_ps
        values = (
            self.delivered_bytes / self.window_bytes,
            self.marked_bytes / max(self.acked_bytes, 1),
            self.lost_bytes / max(self.lost_bytes + self.delivered_bytes, 1),
            (self.rtt_min_ps or base) / base - 1.0,
            self.srtt_ps / base - 1.0,
            math.log2(self.window_bytes / self.mss_bytes),
            self.in_flight_bytes / self.window_bytes,
            float(self.timed_out),
        )
        return np.clip(np.asarray(values, dtype=np.float32), _LEAST, _MOST)


def power(interval: Interval) -> float:
    """The reward unless another is given: what was delivered less what was lost, as a share of the most that was ever
    delivered in an interval, over the delay as a multiple of the idle network's.
    """
    share = (interval.delivered_bytes - interval.lost_bytes) / max(interval.best_bytes, 1)
    return share * interval.base_rtt_ps / max(interval.srtt_ps, interval.base_rtt_ps)


class Reno(Control):
    """Slow start, a segment a round trip, half at a loss (RFC 5681): what flows do that do not learn, unless another
    control is given.
    """

    def on_start(self, start: StartEvent) -> None:
        """In slow start."""
        self.mss, self.slow_until = start.mss_bytes, 2**62

    def on_ack(self, acks: AckEvent) -> None:
        """Grows."""
        window = self.window_bytes
        per_window = window if window < self.slow_until else self.mss
        self.window_bytes = window + per_window * min(acks.growing_bytes, window) // window

    def on_loss(self, loss: CongestionEvent) -> None:
        """Shrinks."""
        if not loss.again:
            self.slow_until = self.window_bytes = max(loss.flight_bytes // 2, 2 * self.mss)
        if loss.timeout:
            self.window_bytes = self.mss

    def on_mark(self, mark: CongestionEvent) -> None:
        """Shrinks as at a loss."""
        self.on_loss(mark)


class _Episode:
    """State shared by flows and the environment: which flows wait for a decision, and the decisions."""

    def __init__(self, flow: int | None, others: Control, interval_ps: int | None, delay_ps: int) -> None:
        self.flow, self.others, self.interval_ps, self.delay_ps = flow, others, interval_ps, delay_ps
        self.waiting: deque[tuple[_Learns, Interval]] = deque()
        self.halt: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        # A result's scenario says by it what ran: nothing that differs from run to run.
        said = (self.flow, type(self.others).__name__, self.interval_ps, self.delay_ps)
        return f"flow {said[0]}, others {said[1]}, every {said[2]} ps, after {said[3]} ps"


class _Learns(Control):
    """A flow whose window an agent decides."""

    def __init__(self, episode: _Episode) -> None:
        self.episode = episode
        self.other: Control | None = None
        self.factor: float | None = None
        self.acks: dict[str, Any] = {}
        self.timed_out = False

    def on_start(self, start: StartEvent) -> None:
        """The first decision comes after an interval."""
        episode = self.episode
        self.number = start.flow
        if episode.flow not in (None, start.flow):
            others = episode.others
            self.other = type(others)(*others._arguments, **(others._named or {}))
            self.other.window_bytes = start.window_bytes
            self.other.on_start(start)
            self._answer_as(self.other)
            return
        self.mss, self.base, self.hop = start.mss_bytes, start.base_rtt_ps, start.hop_rtt_ps
        self.interval = max(episode.interval_ps or start.rtt_ps, 2 * episode.delay_ps)
        self.best = 0
        self._forget(start.rtt_ps, 1)
        # All acknowledgements of an interval come together, before its end is told.
        self.quiet_bytes = self.quiet_until = _ENDLESS
        self.set_timer(self.interval)

    def _forget(self, srtt_ps: int, hops: int) -> None:
        self.acked = self.marked = self.delivered = self.lost = 0
        self.rtt_min: int | None = None
        self.srtt, self.hops, self.timed_out = srtt_ps, hops, False
        self.in_flight = getattr(self, "in_flight", 0)

    def on_ack(self, acks: AckEvent) -> None:
        """Adds to the interval."""
        if self.other is not None:
            self.other.on_ack(acks)
            return self._answer_as(self.other)
        self.acked += acks.acked_bytes
        self.marked += acks.marked_bytes
        self.delivered += acks.delivered_bytes
        self.lost += acks.lost_bytes
        least = acks.rtt_min_ps
        if least is not None:
            self.rtt_min = least if self.rtt_min is None else min(self.rtt_min, least)
        self.srtt, self.hops, self.in_flight = acks.srtt_ps, acks.hops, acks.in_flight_bytes
        return None

    def on_loss(self, loss: CongestionEvent) -> None:
        """Is part of what is observed: the window is the agent's."""
        if self.other is not None:
            self.other.on_loss(loss)
            return self._answer_as(self.other)
        self.timed_out |= loss.timeout
        return None

    def on_mark(self, mark: CongestionEvent) -> None:
        """Is counted by bytes."""
        if self.other is not None:
            self.other.on_mark(mark)
            self._answer_as(self.other)

    def on_timer(self, now_ps: int) -> None:
        """Asks for a decision, or does what was decided."""
        if self.other is not None:
            self.other.on_timer(now_ps)
            return self._answer_as(self.other)
        episode = self.episode
        if self.factor is not None:
            window = self.window_bytes * self.factor
            self.window_bytes = int(min(max(window, self.mss), 2**31 * self.mss, 1e12))
            self.factor = None
            return self.set_timer(self.interval - episode.delay_ps)
        self.best = max(self.best, self.delivered)
        base = self.base + self.hop * self.hops
        seen = Interval(
            flow=self.number,
            now_ps=now_ps,
            interval_ps=self.interval,
            window_bytes=self.window_bytes,
            mss_bytes=self.mss,
            acked_bytes=self.acked,
            marked_bytes=self.marked,
            delivered_bytes=self.delivered,
            lost_bytes=self.lost,
            in_flight_bytes=self.in_flight,
            rtt_min_ps=self.rtt_min,
            srtt_ps=self.srtt,
            base_rtt_ps=base,
            timed_out=self.timed_out,
            best_bytes=self.best,
        )
        self._forget(self.srtt, self.hops)
        # Decided before this comes: the run stops at the end of the window, which is no later.
        self.factor = 1.0
        episode.waiting.append((self, seen))
        episode.halt()
        return self.set_timer(episode.delay_ps)


class _LearnsBeside(_Learns):
    """The same where the others hear of packets that leave. It costs each flow one call per packet."""

    def on_send(self, sent: SentEvent) -> None:
        """Is told to others alone."""
        if self.other is not None:
            self.other.on_send(sent)
            self._answer_as(self.other)


class ControlEnv(_Env):
    """An environment in which an agent decides the windows of TCP flows.

    A step runs the simulator until the next flow has seen an interval, and gives what it saw. The action, from -1 to 1,
    multiplies its window by 2 to the power of it. It holds after `delay_us`, as an agent's answer takes time. Under
    `flow=None` each flow of the transport asks, in the order of time, and `info["flow"]` says which; with a number that
    one alone, and `others` is the control of the rest. Traffic classes with a transport of their own keep it: `key`
    says which transport is replaced, such as "traffic.0.transport".

    Observed: bytes delivered as a multiple of the window; the share of marked and of lost bytes; the least and the
    smoothed round trip above the idle one, as a multiple of that; log2 of the window in segments; bytes in flight as a
    share of the window; whether a timeout came. `info` has them as plain numbers, as `Interval` does, from which
    `reward` makes a number (by default `power`). An episode is a run: it terminates when that has ended, and `result`
    then has its tables. Its seed is the scenario's; without one each `reset` draws the next.

    `interval_us`: by default the longest round trip of an idle network. `delay_us`: by default the least that is
    possible, the delay between the network's parts, at least 0.1. `ecn` and `threshold` as in `clearway.Control`.

    >>> import clearway as cw, clearway.gym
    >>> env = cw.gym.ControlEnv("examples/tiny.toml")
    >>> seen, info = env.reset(seed=1)
    >>> seen.shape, info["flow"]
    ((8,), 0)
    >>> over = False
    >>> while not over:
    ...     seen, reward, over, cut, info = env.step(env.action_space.high)
    >>> env.result.ok, env.result.unfinished
    (True, 0)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012, Gymnasium's own way

    def __init__(
        self,
        scenario: Scenario | str | Path,
        flow: int | None = None,
        *,
        interval_us: float | None = None,
        delay_us: float | None = None,
        reward: Callable[[Interval], float] = power,
        others: Control | None = None,
        key: str = "transport",
        ecn: str = "off",
        threshold: str | None = None,
        memory_limit: float | None = None,
    ) -> None:
        self._scenario, self._flow, self._key = scenario_of(scenario), flow, key
        self._others, self._reward, self._memory_limit = others or Reno(), reward, memory_limit
        self._interval_ps = None if interval_us is None else _time("interval_us", interval_us)
        self._delay_ps = None if delay_us is None else _time("delay_us", delay_us)
        _, flows = self._scenario.check()
        if flow is not None and not 0 <= flow < flows:
            raise ValueError(f"flow={flow}: the scenario has flows 0 to {flows - 1}")
        hears = flow is not None and type(self._others).on_send is not Control.on_send
        base = _LearnsBeside if hears else _Learns
        self._class: type[_Learns] = type("Learns", (base,), {"ecn": ecn, "threshold": threshold})
        self.observation_space = gymnasium.spaces.Box(_LEAST, _MOST, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._steps: _core.Steps | None = None
        self._episode: _Episode | None = None
        self.result: Result | None = None
        """Of the last episode, once it has ended or `close` was called."""

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode and runs to its first decision."""
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        episode = _Episode(self._flow, self._others, self._interval_ps, self._delay_ps or 0)
        scenario = self._scenario.with_({self._key: self._class(episode)}, seed=drawn)
        traffic = scenario.to_dict().get("traffic", [])
        if self._key == "transport" and traffic and all("transport" in of for of in traffic):
            raise ScenarioError(
                scenario.name,
                None,
                "transport",
                "controls nothing, since every traffic class names its own; give the key of a class, such as "
                'key="traffic.0.transport"',
            )
        self._steps = steps = _core.Steps(
            outside.native(scenario._core, "environments"), memory_bytes_max(self._memory_limit)
        )
        least = max(steps.lookahead_ps, 100_000)
        if self._delay_ps is not None and self._delay_ps < least:
            raise ValueError(
                f"delay_us={self._delay_ps / _US_PS:g}: this network's parts are {least / _US_PS:g} us apart, and an "
                "action can hold no sooner"
            )
        episode.delay_ps = self._delay_ps or least
        if self._interval_ps is not None and self._interval_ps < 2 * episode.delay_ps:
            raise ValueError(
                f"interval_us={self._interval_ps / _US_PS:g}: an action holds after {episode.delay_ps / _US_PS:g} us; "
                "give at least twice that"
            )
        episode.halt = steps.halt
        self._episode, self._name = episode, scenario.name
        self._began, self._cpu = time.perf_counter(), time.process_time()
        if self._go_on():
            raise ValueError(
                "no flow of the transport lives for an interval, so there is nothing to decide; give longer flows, or "
                "a shorter interval_us"
            )
        _, self._seen = episode.waiting[0]
        return self._seen.observation(), dict(vars(self._seen))

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Decides for the flow that was seen last, and runs to the next decision."""
        episode = self._episode
        if episode is None or not episode.waiting:
            raise RuntimeError("the episode has ended: call reset()")
        exponent = float(np.asarray(action, dtype=np.float64).reshape(-1)[0])
        if not -1.0 <= exponent <= 1.0:
            raise ValueError(f"action {exponent}: must be from -1 to 1")
        flow, _ = episode.waiting.popleft()
        flow.factor = 2.0**exponent
        if not episode.waiting and self._go_on():
            self.close()
            return self._seen.observation(), 0.0, True, False, dict(vars(self._seen))
        _, self._seen = episode.waiting[0]
        return self._seen.observation(), float(self._reward(self._seen)), False, False, dict(vars(self._seen))

    def _go_on(self) -> bool:
        """Runs to the next decision. Returns whether there is none."""
        assert self._steps is not None and self._episode is not None
        while not self._episode.waiting:
            if self._steps.advance():
                return not self._episode.waiting
        return False

    def close(self) -> None:
        """Ends the episode; its result is what it has given so far."""
        if self._steps is not None:
            self.result = result_of(self._name, self._steps.conclude(), self._began, self._cpu)
        self._steps = self._episode = None


def vector(
    scenario: Scenario | str | Path, count: int, *, processes: bool = False, **settings: Any
) -> SyncVectorEnv | AsyncVectorEnv:
    """So many environments side by side, each with a seed of its own: in turn, or each in a process of its own.

    `settings` are those of `ControlEnv`.

    >>> import clearway as cw, clearway.gym, numpy as np
    >>> envs = cw.gym.vector("examples/tiny.toml", 3)
    >>> seen, info = envs.reset(seed=1)
    >>> seen.shape
    (3, 8)
    >>> envs.step(np.zeros((3, 1), np.float32))[1].shape
    (3,)
    >>> envs.close()
    """
    read = scenario_of(scenario)
    # Text travels to another process; what has been read does not.
    text, folder = read.to_toml(), read._folder

    def one() -> ControlEnv:
        return ControlEnv(Scenario.from_toml(text, folder=folder), **settings)

    return AsyncVectorEnv([one] * count, context="spawn") if processes else SyncVectorEnv([one] * count)


def _time(name: str, us: float) -> int:
    ps = round(us * _US_PS)
    if not 100_000 <= ps <= 60_000 * _MS_PS:
        raise ValueError(f"{name}={us}: must be from 0.1 to 60,000,000 microseconds")
    return ps
