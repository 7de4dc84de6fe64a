"""Families with exactly one fault each, beside twins without it: what `parity selftest` runs. See docs/selftest.md.

They are built, recorded, captured and judged like any other family; nothing else knows their names.
"""
