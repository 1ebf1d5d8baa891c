"""Runs one request in ns-3, with the Python that has it: run_ns3.py NETWORK.cc REQUEST SETTINGS ANSWER.

`clearway against ns3` calls this; it needs nothing of Clearway.
"""

import json
import os
import sys


def main(network: str, request: str, settings: str, answer: str) -> None:
    """Sets what the settings say, compiles the network, and runs the request."""
    import ns as package  # type: ignore[import-not-found]
    from ns import ns

    with open(settings) as file:
        for name, value in json.load(file).items():
            ns.Config.SetDefault(f"ns3::{name}", ns.StringValue(value))
    # The time of a packet of 100 Gbps on a link is no whole number of nanoseconds.
    ns.Time.SetResolution(ns.Time.PS)
    with open(network) as file:
        ns.cppyy.cppdef(file.read())
    print("version", getattr(package, "__version__", "3.44"), flush=True)
    ns.cppyy.gbl.against.run(request, answer)
    # Without ns-3's destructors, which run into cppyy's.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
