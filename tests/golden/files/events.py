import time
from pyinstrument import Profiler
from pyinstrument.renderers import SpeedscopeRenderer

def leaf(n):
    total = 0
    for i in range(n):
        total += i
    return total

def branch(depth):
    if depth > 0:
        branch(depth - 1)
    leaf(200000)

def rest():
    time.sleep(0.02)

def main():
    end = time.time() + 0.4
    while time.time() < end:
        branch(2)
        rest()

profiler = Profiler(interval=0.002)
profiler.start()
main()
profiler.stop()
print(profiler.output(SpeedscopeRenderer()))
