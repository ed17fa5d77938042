"""Callers that call one loaded model at the same time, as benchmarks/callers.cc has them in C++."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any


def measure_throughput(callers: Sequence[Callable[[], object]], seconds: float) -> dict[str, Any]:
    """Calls each for so many seconds, at least once, on a thread of its own.

    A call of each goes before, and doesn't count.
    """
    clock = time.perf_counter_ns
    usage: list[resource.struct_rusage] = []
    begins: list[int] = []
    times: list[list[int]] = [[] for _ in callers]
    ends: list[int] = []
    errors: list[BaseException] = []

    def begin() -> None:
        usage.append(resource.getrusage(resource.RUSAGE_SELF))
        begins.append(clock())

    start = threading.Barrier(len(callers), action=begin)

    def run(call: Callable[[], object], own: list[int]) -> None:
        try:
            call()
            start.wait()
            now = begins[0]
            deadline = now + int(seconds * 1e9)
            while now < deadline or not own:
                call()
                after = clock()
                own.append(after - now)
                now = after
            ends.append(now)
        except BaseException as error:
            errors.append(error)
            start.abort()

    threads = [threading.Thread(target=run, args=pair) for pair in zip(callers, times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    after = resource.getrusage(resource.RUSAGE_SELF)
    all_times = sorted(time for own in times for time in own)
    count = len(all_times)
    return {
        "calls": count,
        "seconds": (max(ends) - begins[0]) / 1e9,
        "median_ns": all_times[count // 2],
        "p99_ns": all_times[min(count - 1, count * 99 // 100)],
        "faults": (after.ru_minflt - usage[0].ru_minflt) / count,
        "waits": (after.ru_nvcsw - usage[0].ru_nvcsw) / count,
    }
