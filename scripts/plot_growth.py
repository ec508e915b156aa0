#!/usr/bin/env python3
"""Draws bytes a key against the number of keys from exact_growth_bench's CSV, as SVG.

    build/release/bench/exact_growth_bench 200000000 > growth.csv
    scripts/plot_growth.py growth.csv > docs/exact_growth.svg
"""
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 60, 20, 30, 50
ALLOWED_SMALL, ALLOWED_LARGE, LARGE_FROM = 1.25, 1.19, 1e8


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: plot_growth.py CSV > SVG")
    rows = []
    with open(sys.argv[1], encoding="utf-8") as csv:
        for line in csv:
            if line[:1].isdigit():
                rows.append([float(field) for field in line.split(",")])
    rows = [row for row in rows if row[0] >= 4e6]
    if not rows:
        sys.exit(f"{sys.argv[1]}: no line from 4 million keys on; run the benchmark with more keys")
    first, last = math.log10(rows[0][0]), math.log10(rows[-1][0])
    low = math.floor(min(row[2] for row in rows))
    high = math.ceil(max(row[1] for row in rows))

    def x(keys):
        return LEFT + (math.log10(keys) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(size):
        return TOP + (high - size) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def line(points, colour, dash=""):
        path = " ".join(f"{x(k):.1f},{y(v):.1f}" for k, v in points)
        print(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"'
              f' stroke-dasharray="{dash}"/>')

    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
          ' font-family="sans-serif" font-size="12">')
    print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    for size in range(low, high + 1):
        print(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(size):.1f}" y2="{y(size):.1f}"'
              f' stroke="#ddd"/><text x="{LEFT - 8}" y="{y(size) + 4:.1f}" text-anchor="end">'
              f'{size}</text>')
    for exponent in range(6, 10):
        for factor in (1, 2, 5):
            keys = factor * 10**exponent
            if first <= math.log10(keys) <= last:
                print(f'<line x1="{x(keys):.1f}" x2="{x(keys):.1f}" y1="{TOP}"'
                      f' y2="{HEIGHT - BOTTOM}" stroke="#ddd"/><text x="{x(keys):.1f}"'
                      f' y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{keys // 10**6} M</text>')
    allowed = [(k, b * (ALLOWED_SMALL if k < LARGE_FROM else ALLOWED_LARGE))
               for k, _, b, _ in rows]
    line([(row[0], row[1]) for row in rows], "#c33")
    line(allowed, "#888", "5 4")
    line([(row[0], row[2]) for row in rows], "#36c")
    print(f'<text x="{LEFT}" y="18">bytes a key, resident (red); information bound (blue); 1.25 and'
          ' 1.19 x the bound (dashed)</text>')
    print(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">keys</text></svg>')


if __name__ == "__main__":
    main()
