"""Turns the lines of peers_bench into a Markdown table on stdout and a JSON file.

    table.py LINES JSON
"""

import json
import sys

COLUMNS = [  # key in the figures, heading, divisor, decimals
    ("memory_bytes_per_key", "bytes a key in memory", 1, 1),
    ("disk_bytes_per_key", "on disk", 1, 1),
    ("adds_per_second", "adds, M/s", 1e6, 2),
    ("hits_per_second", "hits, M/s", 1e6, 2),
    ("misses_per_second", "misses, M/s", 1e6, 2),
    ("durable_adds_per_second", "durable adds, k/s", 1e3, 0),
    ("restart_seconds", "restart, s", 1, 2),
]


def main(lines_path, json_path):
    with open(lines_path, encoding="utf-8") as file:
        peers = [json.loads(line) for line in file]
    with open(json_path, "w", encoding="utf-8") as file:
        json.dump(peers, file, indent=1)
    print(f"{peers[0]['keys']:,} keys".replace(",", " "))
    print()
    print("| | stored | " + " | ".join(heading for _, heading, _, _ in COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    for peer in peers:
        cells = [
            f"{peer[key] / divisor:.{decimals}f}" if key in peer else "–"
            for key, _, divisor, decimals in COLUMNS
        ]
        print(f"| {peer['name']} | {peer['stores']} | " + " | ".join(cells) + " |")


main(*sys.argv[1:])
