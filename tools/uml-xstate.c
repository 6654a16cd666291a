/* Loaded before linux.uml: lets it run on processors with AMX.
 *
 * User-mode Linux 6.1 keeps 2 696 bytes of a process's extended registers, which ends after
 * AVX-512. The host's ptrace accepts the set only whole (11 008 bytes with AMX) and otherwise
 * answers EFAULT, of which the guest dies at its first process. So the rest is filled in from
 * the traced process itself. Guests must not use AMX; nothing here does.
 *
 * Self-contained, so that a compiler without C library headers can build it.
 */
struct iovec { void *base; unsigned long length; };

extern void *dlsym(void *, const char *);
extern void *memcpy(void *, const void *, unsigned long);

enum { GETREGSET = 0x4204, SETREGSET = 0x4205, NT_X86_XSTATE = 0x202 };

#define RTLD_NEXT ((void *)-1L)

long ptrace(int request, int pid, void *address, void *data)
{
    static unsigned char registers[65536];
    static long (*next)(int, int, void *, void *);
    struct iovec whole = { registers, sizeof registers };
    struct iovec *given = data;

    if (!next)
        next = dlsym(RTLD_NEXT, "ptrace");
    if (request != SETREGSET || address != (void *)NT_X86_XSTATE)
        return next(request, pid, address, data);
    if (next(GETREGSET, pid, address, &whole) < 0)
        return -1;
    if (given->length >= whole.length)
        return next(request, pid, address, data);
    memcpy(registers, given->base, given->length);
    return next(request, pid, address, &whole);
}
