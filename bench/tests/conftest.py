from fixtures import *  # noqa: F403 - what all Python tests share: tests/python/fixtures.py
