"""kazoo's Lock, with commands and answers as lines. Instants are CLOCK_MONOTONIC, in nanoseconds.

Arguments: hosts, path, session timeout in seconds.
    acquire                      held INSTANT
    release                      released INSTANT-BEFORE-IT
    contend WAITERS FROM UNTIL   a line a section (waiter, asked, entered, left); then done CPU-TIME
"""

import os
import queue
import sys
import threading
import time

from kazoo.client import KazooClient

LONG_SECTION_EVERY = 16


def read(words):
    for line in sys.stdin:
        words.put(line.split())
    # The process that started this one has ended.
    os._exit(0)


def contend(client, path, waiters, start, until):
    sections = []

    def loop(waiter):
        lock = client.Lock(path)
        time.sleep(max(0, start - time.monotonic_ns()) / 1e9)
        while True:
            asked = time.monotonic_ns()
            if asked >= until:
                return
            lock.acquire()
            entered = time.monotonic_ns()
            if len(sections) % LONG_SECTION_EVERY == 0:
                time.sleep(0)
            sections.append((waiter, asked, entered, time.monotonic_ns()))
            lock.release()

    cpu = time.process_time_ns()
    threads = [threading.Thread(target=loop, args=(i,), daemon=True) for i in range(waiters)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cpu = time.process_time_ns() - cpu
    return [" ".join(map(str, section)) for section in sections] + [f"done {cpu}"]


def main():
    hosts, path, timeout = sys.argv[1:]
    words = queue.Queue()
    threading.Thread(target=read, args=(words,), daemon=True).start()
    client = KazooClient(hosts=hosts, timeout=float(timeout))
    client.start()
    lock = client.Lock(path)
    print("ready", flush=True)
    while True:
        verb, *numbers = words.get()
        if verb == "acquire":
            lock.acquire()
            print("held", time.monotonic_ns(), flush=True)
        elif verb == "release":
            left = time.monotonic_ns()
            lock.release()
            print("released", left, flush=True)
        else:
            print("\n".join(contend(client, path, *map(int, numbers))), flush=True)


main()
