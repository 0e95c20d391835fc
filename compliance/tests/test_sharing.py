"""Workers of pytest-xdist take a file's tests together."""

from unittest.mock import Mock

from compliance.tests.sharing import PartScheduling


def test_worker_takes_the_tests_of_a_file_at_once_and_those_that_commit_later() -> None:
    option, workers = Mock(loadscopereorder=False), [Mock(shutting_down=False) for _ in range(2)]
    scheduler = PartScheduling(Mock(option=option, getvalue=lambda name: ["popen"] * len(workers)))
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(
            worker, ["a.py::x", "a.py::T::y", "a.py::z[b.py::1]", "b.py::x", "a.py::committed"]
        )

    scheduler.schedule()

    taken = [[call.args[0] for call in worker.send_runtest_some.call_args_list] for worker in workers]
    assert taken == [[[0, 1, 2]], [[3], [4]]]
