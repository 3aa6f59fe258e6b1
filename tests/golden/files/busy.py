import threading, time

def spin(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def work(until):
    while time.time() < until:
        spin(20000)

def numbers(until):
    while time.time() < until:
        fib(18)

until = time.time() + 1.5
thread = threading.Thread(target=numbers, args=(until,), name="numbers \"é\"")
thread.start()
work(until)
thread.join()
