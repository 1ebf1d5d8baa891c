"""Environments for controllers that learn: what an agent sees and decides, and that a replay is the same."""

from __future__ import annotations

from typing import Any

import clearway as cw
import numpy as np
import pytest
from clearway import gym
from gymnasium.utils.env_checker import check_env

SCENE = """
timing = "ideal"
[fabric.star]
hosts = 4

[[traffic]]
sizes = { constant = "2MB" }
arrivals = "all_at_once"
pattern = { incast = { degree = 3 } }
flows = 3
"""


def scene(**keys: Any) -> cw.Scenario:
    return cw.Scenario.from_toml(SCENE).with_(**keys)


class Fixed(cw.Control):
    """The initial window for ever."""


def played(env: gym.ControlEnv, seed: int, actions: np.random.Generator | None) -> list[tuple[Any, ...]]:
    """Whatever an episode gives, with random actions or none."""
    seen, info = env.reset(seed=seed)
    story: list[tuple[Any, ...]] = [(seen.tolist(), info)]
    over = False
    while not over:
        action = np.zeros(1) if actions is None else actions.uniform(-1, 1, 1)
        seen, reward, over, cut, info = env.step(action.astype(np.float32))
        assert not cut and env.observation_space.contains(seen)
        story.append((seen.tolist(), reward, over, info))
    return story


def test_gymnasium_finds_nothing_wrong() -> None:
    check_env(gym.ControlEnv(scene()), skip_render_check=True)


def test_a_replay_is_the_same_and_another_seed_is_not() -> None:
    scenario = scene().with_({"switch.balancing": "spray", "traffic.0.sizes": "websearch", "traffic.0.flows": 20})
    env, stories, digests = gym.ControlEnv(scenario, ecn="proportional"), [], []
    for seed in (3, 3, 4):
        stories.append(played(env, seed, np.random.default_rng(7)))
        assert env.result is not None
        digests.append(env.result.digest)
    assert len(stories[0]) > 50
    assert stories[0] == stories[1] and digests[0] == digests[1]
    assert stories[0] != stories[2] and digests[0] != digests[2]


def test_an_agent_that_changes_nothing_has_the_run_of_a_fixed_window() -> None:
    env = gym.ControlEnv(scene(), interval_us=25, ecn="proportional")
    fixed = cw.run(scene(seed=5, transport=Fixed()), progress=False)
    story = played(env, 5, None)
    assert env.result is not None and env.result.ok and env.result.unfinished == 0
    # The same packets but for the capability to be marked.
    unmarked = gym.ControlEnv(scene(), interval_us=25)
    assert played(unmarked, 5, None)
    assert unmarked.result is not None and unmarked.result.digest == fixed.digest
    # Each flow is asked at the end of each interval, and sees all that arrived in it.
    for flow in range(3):
        own = [step[-1] for step in story if step[-1]["flow"] == flow][:-1]
        times = np.diff([info["now_ps"] for info in own])
        assert len(own) > 5 and set(times) == {25_000_000}
        assert {info["window_bytes"] for info in own} == {10 * own[0]["mss_bytes"]}


def test_an_action_multiplies_the_window_of_the_flow_that_was_seen() -> None:
    env = gym.ControlEnv(scene(), flow=1, interval_us=20, delay_us=5)
    _, info = env.reset(seed=1)
    # The reward is below 0 where more was lost than delivered.
    window, total = info["window_bytes"], 0
    for exponent in (1.0, -0.5, 0.25, 0.0, -1.0, 0.5):
        _, reward, over, _, info = env.step(np.asarray([exponent], np.float32))
        assert not over and info["flow"] == 1 and -1 <= reward <= 1
        window = int(window * 2.0**exponent)
        assert info["window_bytes"] == window
        total += info["delivered_bytes"]
    assert total > 0
    env.close()
    assert env.result is not None and env.result.interrupted
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(np.zeros(1, np.float32))


def test_a_larger_window_delivers_more_until_the_link_is_full() -> None:
    lone = cw.Scenario.from_toml(SCENE.replace("degree = 3", "degree = 1").replace("flows = 3", "flows = 1"))
    rates = []
    for exponent in (-1.0, 0.0):
        env = gym.ControlEnv(lone, interval_us=50)
        env.reset(seed=1)
        env.step(np.asarray([exponent], np.float32))
        # The first interval with the window throughout.
        _, _, over, _, info = env.step(np.zeros(1, np.float32))
        assert not over
        # A window a round trip: the packets wait for nothing else.
        expected = info["window_bytes"] * info["interval_ps"] / info["srtt_ps"]
        assert info["delivered_bytes"] == pytest.approx(expected, abs=info["window_bytes"])
        rates.append(info["delivered_bytes"])
        env.close()
    assert rates[1] > 1.8 * rates[0]


def test_other_classes_and_flows_keep_their_control() -> None:
    scenario = scene().with_({"traffic.0.transport": "dctcp"})
    with pytest.raises(cw.ScenarioError, match="every traffic class names its own"):
        gym.ControlEnv(scenario).reset(seed=1)
    env = gym.ControlEnv(scenario, key="traffic.0.transport", flow=2, others=gym.Reno())
    played(env, 1, np.random.default_rng(1))
    assert env.result is not None and env.result.ok and env.result.unfinished == 0
    alone = cw.run(scene(seed=1, transport=gym.Reno()), progress=False)
    assert alone.ok and alone.unfinished == 0


def test_side_by_side_each_has_a_seed_of_its_own() -> None:
    envs = gym.vector(scene(), 3)
    seen, _ = envs.reset(seed=10)
    single = gym.ControlEnv(scene())
    for place in range(3):
        alone, _ = single.reset(seed=10 + place)
        assert alone.tolist() == seen[place].tolist()
    again = gym.vector(scene(), 3, processes=True)
    assert again.reset(seed=10)[0].tolist() == seen.tolist()
    actions = np.asarray([[-0.5], [0.0], [0.5]], np.float32)
    ours, theirs = envs.step(actions), again.step(actions)
    assert ours[0].tolist() == theirs[0].tolist() and ours[1].tolist() == theirs[1].tolist()
    envs.close()
    again.close()


def test_what_makes_no_sense_is_refused_with_what_would() -> None:
    with pytest.raises(ValueError, match="flow=3: the scenario has flows 0 to 2"):
        gym.ControlEnv(scene(), flow=3)
    with pytest.raises(ValueError, match=r"interval_us=0\.01: must be from 0\.1"):
        gym.ControlEnv(scene(), interval_us=0.01)
    with pytest.raises(ValueError, match="can hold no sooner"):
        gym.ControlEnv(scene(), delay_us=0.1).reset(seed=1)
    with pytest.raises(ValueError, match="give at least twice that"):
        gym.ControlEnv(scene(), interval_us=1, delay_us=1).reset(seed=1)
    short = scene().with_({"traffic.0.sizes": {"constant": "100B"}})
    with pytest.raises(ValueError, match="nothing to decide"):
        gym.ControlEnv(short).reset(seed=1)
    env = gym.ControlEnv(scene())
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"action 1\.5: must be from -1 to 1"):
        env.step(np.asarray([1.5], np.float32))
