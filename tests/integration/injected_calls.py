"""System calls that a thread of another process is made to make, by ptrace(2). Linux on x86-64, by root.

gdb would do, but that of Debian 12 cannot write the registers of processors with AMX, so it calls no function there.
"""

import ctypes
import os
import re
import signal
import struct

PTRACE_POKEDATA, PTRACE_CONT, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_ATTACH, PTRACE_DETACH = 5, 7, 12, 13, 16, 17
WALL = 0x40000000  # wait for threads, too
# struct user_regs_struct
REGISTERS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base"
             " ds es fs gs").split()
ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
SYSCALL_RET = b"\x0f\x05\xc3"
RED_ZONE = 128

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, tid, address=0, data=0):
    if libc.ptrace(request, tid, address, data) == -1:
        raise OSError(ctypes.get_errno(), "ptrace request %d of thread %d" % (request, tid))


def find_thread(pid, names):
    """The thread with the first of these names that there is."""
    threads = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            threads[f.read().strip()] = int(tid)
    return next(threads[name] for name in names if name in threads)


def find_code(pid, code):
    """The address of some instructions in the C library of the process."""
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb") as memory:
        for begin, end in re.findall(r"^(\w+)-(\w+) r-xp .*/libc\.so\.6$", maps.read(), re.M):
            memory.seek(int(begin, 16))
            at = memory.read(int(end, 16) - int(begin, 16)).find(code)
            if at >= 0:
                return int(begin, 16) + at
    raise AssertionError("no %s in the C library" % code.hex())


class Traced:
    """A thread that stands still."""

    def __init__(self, pid, tid):
        self.tid, self.code = tid, find_code(pid, SYSCALL_RET)

    def __enter__(self):
        ptrace(PTRACE_ATTACH, self.tid)
        os.waitpid(self.tid, WALL)
        self.own = self.registers()
        return self

    def __exit__(self, *of_error):
        self.set_registers(self.own)
        ptrace(PTRACE_DETACH, self.tid)

    def registers(self):
        buffer = ctypes.create_string_buffer(8 * len(REGISTERS))
        ptrace(PTRACE_GETREGS, self.tid, 0, ctypes.addressof(buffer))
        return dict(zip(REGISTERS, struct.unpack("%dQ" % len(REGISTERS), buffer.raw)))

    def set_registers(self, values):
        packed = struct.pack("%dQ" % len(REGISTERS), *(values[name] & (1 << 64) - 1 for name in REGISTERS))
        buffer = ctypes.create_string_buffer(packed, len(packed))
        ptrace(PTRACE_SETREGS, self.tid, 0, ctypes.addressof(buffer))

    def call(self, number, *arguments):
        """The result of a system call, below 0 the number of an error. Its return to address 0 ends it."""
        stack = (self.own["rsp"] - RED_ZONE - 64) & ~15
        ptrace(PTRACE_POKEDATA, self.tid, stack, 0)
        call = {"rax": number, "rip": self.code, "rsp": stack, "orig_rax": -1, **dict(zip(ARGUMENTS, arguments))}
        self.set_registers({**self.own, **call})
        deliver = 0
        while True:
            ptrace(PTRACE_CONT, self.tid, 0, deliver)
            status = os.waitpid(self.tid, WALL)[1]
            assert os.WIFSTOPPED(status), "the thread has ended"
            deliver = os.WSTOPSIG(status)
            if deliver == signal.SIGSEGV:
                now = self.registers()
                assert now["rip"] == 0, "the thread crashed"
                return struct.unpack("q", struct.pack("Q", now["rax"]))[0]
