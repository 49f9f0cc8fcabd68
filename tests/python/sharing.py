"""How pytest-xdist shares out files of tests, but for a test that ends its worker: it is not run a
second time, and the rest of its file goes to another worker.

pytest-xdist 3.8 gives a crashed test out again with the rest of its file, so it ends one worker
after the other until the run is given up.
"""

from xdist.scheduler import LoadFileScheduling


class Sharing(LoadFileScheduling):
    def remove_node(self, node):
        """Takes a worker out that has ended; the test that it ended with, or None."""
        work = self.assigned_work.pop(node)
        crashed = next((test for tests in work.values() for test, done in tests.items()
                        if not done), None)  # fmt: skip
        for file, tests in work.items():
            if crashed in tests:
                tests[crashed] = True
            if not all(tests.values()):
                self.workqueue[file] = tests
        if crashed:
            for other in self.assigned_work:
                self._reschedule(other)
        return crashed
