"""The steps of bench/scale.sh.

    scale.py PROGRAM ROWS_PROGRAM DIRECTORY KEYS
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time

GB = 1e9
DISK_BYTES_PER_KEY = 30  # log and two snapshots, at the most


class Disk:
    """Watches what a directory takes, for its peak."""

    def __init__(self, path):
        self.path = path
        self.peak = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def used(self):
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except FileNotFoundError:
                    pass
        self.peak = max(self.peak, total)
        return total

    def _watch(self):
        while True:
            self.used()
            time.sleep(0.5)


class Scale:
    def __init__(self, program, rows, directory, keys):
        self.program = os.path.abspath(program)
        self.rows = os.path.abspath(rows)
        self.data = os.path.join(directory, "data")
        self.keys = keys
        self.lookups = min(keys, 1_000_000)
        self.disk = Disk(self.data)

    def run(self, name, arguments, rows=()):
        """Runs the program, fed by the rows program with arguments `rows`; returns its output."""
        source = None
        stdin = subprocess.DEVNULL
        if rows:
            source = subprocess.Popen([self.rows, *map(str, rows)], stdout=subprocess.PIPE)
            stdin = source.stdout
        start = time.monotonic()
        child = subprocess.Popen(
            [self.program, *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        if source:
            source.stdout.close()
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - start
        if source and source.wait() != 0:
            sys.exit(f"scale: {name}: the rows ended early")
        if status != 0:
            sys.exit(f"scale: {name} failed: {output.decode(errors='replace')[-2000:]}")
        if name:
            print(
                f"{name:36} {seconds:8.1f} s   peak memory {usage.ru_maxrss * 1024 / GB:6.2f} GB"
                f"   disk {self.disk.used() / GB:6.2f} GB",
                flush=True,
            )
        return output

    def check(self, name, first, verdict):
        """Looks up rows that are all expected to get `verdict`."""
        output = self.run(
            name, ["check", "--data", self.data, "known"], (self.lookups, first, "2023-01-01|")
        )
        found = sum(1 for line in output.splitlines() if verdict in line.split(b"|"))
        if found != self.lookups:
            sys.exit(f"scale: {name}: {found} of {self.lookups} rows are {verdict.decode()}")

    def all(self):
        print(f"{self.keys} keys of 56 characters, 96-bit fingerprints, {os.cpu_count()} cores")
        self.run("", ["init", "--data", self.data])
        self.run(
            "",
            ["create", "--data", self.data, "known", "--window", "none", "--fields", "device",
             "--normalise", "opaque"],
        )  # fmt: skip
        output = self.run(
            "import from a pipe, and a snapshot",
            ["import", "--data", self.data, "known", "-", "--columns", "device", "--json"],
            (self.keys, 0),
        )
        result = json.loads(output)
        if result["added"] != self.keys:
            sys.exit(f"scale: added {result['added']} keys, not {self.keys}")
        print(f"{'':36} {result['rows_per_second'] / 1e6:8.2f} million rows a second")
        stats = json.loads(self.run("restart, stats", ["stats", "--data", self.data, "--json"]))
        self.check(f"restart, {self.lookups} hits", self.keys - self.lookups, b"PRESENT")
        self.check(f"restart, {self.lookups} misses", self.keys, b"ABSENT")
        window = stats["sets"][0]["windows"][0]
        print(f"members                              {window['members']}")
        print(f"bytes a member                       {window['bytes_per_member']:.2f}")
        print(f"false-duplicate probability          {window['false_duplicate_probability']:.2g}")
        print(f"disk, peak                           {self.disk.peak / GB:.2f} GB")


def main(program, rows, directory, keys):
    need = int(keys) * DISK_BYTES_PER_KEY
    free = shutil.disk_usage(directory).free
    if free < need:
        sys.exit(f"scale: needs {need / GB:.0f} GB under {directory}, which has {free / GB:.0f} GB")
    Scale(program, rows, directory, int(keys)).all()


main(*sys.argv[1:])
