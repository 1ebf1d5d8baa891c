"""A neighbour at the hook, a tcx program: `python tests/kernel/tcx.py DEVICE ingress|egress first|last CODE|fdN`.

It returns CODE for every packet: 0, TCX_PASS, ends the chain and leaves clsact out; -1, TCX_NEXT, goes on. Or it is the
one whose descriptor is N. It stays until its standard input ends, and needs no other program.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys

SYSCALL = {"x86_64": 321, "aarch64": 280}
LOAD, GET, LINK = 5, 7, 28
CLASSIFIER = 3
TYPES = {"ingress": 46, "egress": 47}
# BPF_F_BEFORE and BPF_F_AFTER, relative to nothing.
PLACES = {"first": 1 << 3, "last": 1 << 4}


def bpf(command: int, arguments: bytes) -> int:
    """`bpf(2)`; returns a descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    room = ctypes.create_string_buffer(arguments, len(arguments))
    done: int = libc.syscall(SYSCALL[os.uname().machine], command, room, len(arguments))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def load(code: int) -> int:
    """A program that returns `code`."""
    # r0 = code; return r0
    program = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xB7, 0, 0, code, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    return bpf(
        LOAD, struct.pack("<IIQQ", CLASSIFIER, 2, ctypes.addressof(program), ctypes.addressof(licence)) + bytes(96)
    )


def pinned(path: str) -> int:
    """A program that is pinned."""
    name = ctypes.create_string_buffer(path.encode())
    return bpf(GET, struct.pack("<QII", ctypes.addressof(name), 0, 0))


def attach(device: str, direction: str, place: str, program: int) -> int:
    """Attaches a program; it stays as long as this descriptor is open."""
    index = socket.if_nametoindex(device)
    return bpf(LINK, struct.pack("<IIIIIIQ", program, index, TYPES[direction], PLACES[place], 0, 0, 0))


if __name__ == "__main__":
    what = sys.argv[4]
    given = int(what[2:]) if what.startswith("fd") else load(int(what))
    held = attach(*sys.argv[1:4], given)
    print("attached", flush=True)
    sys.stdin.read()
