from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
# The functions of packed.py in C, on a little-endian machine.

cdef enum:
    NAME = 8
    NUMBER = 8

cdef inline bytes pack(tuple values):
    cdef bytes made = PyBytes_FromStringAndSize(NULL, len(values) * 8)
    cdef Py_ssize_t at
    cdef double value
    for at in range(len(values)):
        value = values[at]
        memcpy(PyBytes_AS_STRING(made) + at * 8, &value, 8)
    return made

cdef inline list unpack(bytes doubles):
    cdef Py_ssize_t at
    return [double_at(doubles, at) for at in range(0, PyBytes_GET_SIZE(doubles), 8)]

cdef inline Py_ssize_t find(bytes names, bytes name) except -2:
    cdef uint64_t wanted, other
    cdef Py_ssize_t at
    if PyBytes_GET_SIZE(name) != 8:
        raise ValueError(name)
    memcpy(&wanted, PyBytes_AS_STRING(name), 8)
    for at in range(0, PyBytes_GET_SIZE(names) - 7, 8):
        memcpy(&other, PyBytes_AS_STRING(names) + at, 8)
        if other == wanted:
            return at
    return -1

cdef inline double double_at(bytes doubles, Py_ssize_t at) except? -1.0:
    cdef double value
    if at < 0 or at + 8 > PyBytes_GET_SIZE(doubles):
        raise IndexError(at)
    memcpy(&value, PyBytes_AS_STRING(doubles) + at, 8)
    return value

cdef inline Py_ssize_t least(bytes doubles) except -1:
    cdef Py_ssize_t at, found = 0
    cdef double value, lowest = double_at(doubles, 0)
    for at in range(8, PyBytes_GET_SIZE(doubles), 8):
        value = double_at(doubles, at)
        if value < lowest:
            found, lowest = at, value
    return found

cdef inline bytes without(bytes packed, Py_ssize_t at):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(packed) - 8
    if at < 0 or at > size:
        raise IndexError(at)
    cdef bytes made = PyBytes_FromStringAndSize(PyBytes_AS_STRING(packed), size)
    memcpy(PyBytes_AS_STRING(made) + at, PyBytes_AS_STRING(packed) + at + 8, size - at)
    return made

cdef inline bytes with_double(bytes doubles, Py_ssize_t at, double value):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(doubles)
    if at < 0 or at > size:
        raise IndexError(at)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, max(size, at + 8))
    memcpy(PyBytes_AS_STRING(made), PyBytes_AS_STRING(doubles), size)
    memcpy(PyBytes_AS_STRING(made) + at, &value, 8)
    return made
