#!/usr/bin/env python3
"""Prints the figures of ./run.sh from the JSON answers in DIR/results, and compares the counts with
the truth in DIR/year/truth.json. Exit 1 when they differ or the bill is not verified."""
import json
import sys

directory = sys.argv[1]


def load(name):
    with open(f"{directory}/{name}", encoding="utf-8") as file:
        return json.load(file)


def line(what, value):
    print(f"{what:<20}{value}")


def n(number):
    return f"{number:,.0f}".replace(",", " ")


imported, gap = load("results/import.json"), load("results/gap.json")
runs = [load("results/run1.json"), load("results/run2.json")]
stats, verify = load("results/stats.json"), load("results/verify.json")
truth = load("year/truth.json")


def both(key):
    return sum(run[key] for run in runs)


line("history", f"{n(imported['rows'])} rows: {n(imported['added'])} members, "
     f"{n(imported['duplicates'])} duplicates, {n(imported['rejected'])} rejected")
line("import", f"{n(imported['rows_per_second'])} rows/s")
line("gap import", f"{n(gap['rows'])} rows, {n(gap['added'])} new members")
line("billing", f"{n(both('rows'))} rows, {n(both('rows') / max(both('seconds'), 1e-9))} rows/s "
     "with ledger and bill files")
line("bill files", f"{n(both('bill_files'))} with {n(both('billed_rows'))} rows, "
     f"{n(both('duplicates'))} duplicates left out")
differences = []
for window in stats["sets"][0]["windows"]:
    name = window["window"]
    line(f"members of {name}", f"{n(window['members'])} at {window['bytes_per_member']:.2f} bytes; "
         f"chance of any false duplicate {window['false_duplicate_probability']:.1e}")
    if window["members"] != truth["members"][name]:
        differences.append(f"{n(truth['members'][name])} members of {name}")
line("verify", f"{verify['seconds']:.1f} s: {n(verify['billed'])} billed, "
     f"{n(verify['duplicate'])} duplicates")
if imported["rejected"] != truth["history"]["rejected"]:
    differences.append(f"{truth['history']['rejected']} rejected rows")
if verify["billed"] != truth["transactions"]["billable"]:
    differences.append(f"{n(truth['transactions']['billable'])} transactions to bill")
if verify["duplicate"] != truth["transactions"]["duplicates"]:
    differences.append(f"{n(truth['transactions']['duplicates'])} duplicates")
if differences:
    sys.exit("show_figures.py: the truth has " + ", ".join(differences))
if not verify["verified"]:
    sys.exit("show_figures.py: the bill is not verified")
print("verified")
