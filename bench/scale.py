"""How cost grows with the work: `python -m bench.scale graph`, `python -m bench.scale migrate`."""

import argparse
from pathlib import Path

from palace.settings import Neo4j


def main() -> None:
    """Run what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    graph = parts.add_parser("graph", help="the graph on a Neo4j server")
    graph.add_argument("--chunks", type=int, default=60_000)
    graph.add_argument("--links", type=int, default=40_000)
    graph.add_argument("--url", help="an empty database of a server that runs; left out: one is started")
    graph.add_argument("--password-file", type=Path)
    moving = parts.add_parser("migrate", help="a palace moved from embedded stores into others")
    moving.add_argument("--chunks", type=int, default=60_000)
    moving.add_argument("--links", type=int, default=40_000)
    asked = parser.parse_args()
    if asked.part == "migrate":
        from bench import scale_migrate  # noqa: PLC0415 - only the part that is asked for

        scale_migrate.measure(asked.chunks, asked.links)
        return
    from bench import scale_graph  # noqa: PLC0415

    settings = Neo4j(url=asked.url, password_file=asked.password_file) if asked.url else None
    scale_graph.measure(scale_graph.make(asked.chunks, asked.links), settings)


if __name__ == "__main__":
    main()
