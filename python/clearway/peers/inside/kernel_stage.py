"""The stage of `clearway against kernel`: network namespaces, a live fabric between them, and a process in each.

kernel_stage.py REQUEST, as the first process of namespaces of its own for processes and mounts (`unshare --pid
--mount`): all that it starts ends with it, and all network namespaces with that, however it ends. It ends itself when
its input does. It needs nothing of Clearway but the command that the request names.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

LEAD_NS = 300_000_000
PATIENCE_S = 30.0
NETNS = "/run/netns"


class Stage:
    """The processes of a run, and their words."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.hosts: dict[str, subprocess.Popen[bytes]] = {}
        self.selector = selectors.DefaultSelector()
        self.parts: dict[str, bytes] = {}
        self.fabric: subprocess.Popen[bytes] | None = None
        self.over = False

    def run(self) -> dict[str, Any]:
        """The whole run; the answer."""
        os.makedirs(NETNS, exist_ok=True)
        sh("mount", "-t", "tmpfs", "none", NETNS)
        for host in self.request["hosts"]:
            sh("ip", "netns", "add", host["name"])
        with open(self.request["log"], "wb") as log:
            self.fabric = subprocess.Popen(self.request["live"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        for host in self.request["hosts"]:
            words = ["ip", "netns", "exec", host["name"], sys.executable, self.request["host"], host["plan"]]
            running = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.hosts[host["name"]], self.parts[host["name"]] = running, b""
            assert running.stdout is not None
            os.set_blocking(running.stdout.fileno(), False)
            self.selector.register(running.stdout, selectors.EVENT_READ, host["name"])
        self.all_say("listening")
        self.tell_all("open")
        self.all_say("ready")
        # Not before: programs that start take long, and would hold back another stage of this machine.
        processes = [self.fabric, *self.hosts.values()]
        said = prefer([one.pid for one in processes])
        t0_ns = time.monotonic_ns() + LEAD_NS
        self.tell_all(f"go {t0_ns}")
        done_ns = self.flows(t0_ns)
        self.over = True
        prefer([one.pid for one in processes], False)
        self.tell_all("stop")
        reports = {name: json.loads(line.removeprefix("report ")) for name, line in self.all_say("report").items()}
        self.fabric.send_signal(signal.SIGTERM)
        self.fabric.wait(timeout=60)
        return {"t0_ns": t0_ns, "ended_ns": done_ns - t0_ns, "reports": reports, "priority": said}

    def lines(self, timeout: float) -> list[tuple[str, str]]:
        """Lines that hosts say within a time."""
        assert self.fabric is not None
        if self.fabric.poll() is not None:
            raise RuntimeError(f"the fabric ended: {tail(self.request['log'])}")
        found = []
        for key, _ in self.selector.select(timeout):
            got = os.read(key.fd, 1 << 20)
            if not got:
                self.selector.unregister(key.fileobj)
                if not self.over:
                    raise RuntimeError(f"the process of {key.data} ended")
                continue
            *lines, self.parts[key.data] = (self.parts[key.data] + got).split(b"\n")
            found += [(key.data, line.decode()) for line in lines]
        return found

    def all_say(self, word: str) -> dict[str, str]:
        """Waits until each host has said a line that begins so."""
        heard: dict[str, str] = {}
        until = time.monotonic() + PATIENCE_S
        while len(heard) < len(self.hosts):
            if time.monotonic() > until:
                silent = ", ".join(sorted(set(self.hosts) - set(heard)))
                raise RuntimeError(f"{silent}: not {word} after {PATIENCE_S:.0f} s; {tail(self.request['log'])}")
            heard |= {name: line for name, line in self.lines(1.0) if line.startswith(word)}
        return heard

    def flows(self, t0_ns: int) -> int:
        """Waits for all flows, and returns when they were done, or when the time was over."""
        left, count, told = self.request["flows"], 0, time.monotonic()
        while count < left:
            now = time.monotonic_ns()
            if now > t0_ns + self.request["end_ns"]:
                return now
            count += sum(line.startswith("done ") for _, line in self.lines(0.2))
            if time.monotonic() - told > 0.5:
                told = time.monotonic()
                print("progress", (now - t0_ns) * 1000, count, flush=True)
        return time.monotonic_ns()

    def tell_all(self, line: str) -> None:
        """Says a line to all hosts."""
        for running in self.hosts.values():
            assert running.stdin is not None
            running.stdin.write(f"{line}\n".encode())
            running.stdin.flush()


def prefer(processes: list[int], before: bool = True) -> str:
    """Has these processes go before all else that the machine does, or as usual again; says how."""
    said = "none"
    for task in [int(task.name) for process in processes for task in Path(f"/proc/{process}/task").iterdir()]:
        try:
            policy, priority = (os.SCHED_RR, 1) if before else (os.SCHED_OTHER, 0)
            os.sched_setscheduler(task, policy, os.sched_param(priority))
            said = "real time"
        except OSError:
            try:
                os.setpriority(os.PRIO_PROCESS, task, -20 if before else 0)
            except OSError:
                return "none"
            said = "nice -20"
    return said


def sh(*words: str) -> None:
    """Runs a command."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


def tail(log: str) -> str:
    """The last words of the fabric."""
    return Path(log).read_text(errors="replace").strip()[-1500:] or "it said nothing"


def watch() -> None:
    """Ends all when the caller is gone: this is the first process of its namespace."""
    while os.read(0, 1):
        pass
    os._exit(1)


def main(request: str) -> None:
    """Runs a request."""
    read = json.loads(Path(request).read_text())
    threading.Thread(target=watch, daemon=True).start()
    print("version", os.uname().release, flush=True)
    try:
        answer = Stage(read).run()
    except (RuntimeError, OSError, subprocess.SubprocessError) as problem:
        print(problem, flush=True)
        os._exit(1)
    Path(read["answer"]).write_text(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
