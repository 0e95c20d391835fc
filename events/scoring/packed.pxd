# What packed.py does, for compiled modules on a little-endian machine.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_FromDouble
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport uint64_t
from libc.string cimport memcpy


cdef enum:
    NAME = 8
    NUMBER = 8


cdef inline bytes pack(tuple values):
    cdef Py_ssize_t at, count = PyTuple_GET_SIZE(values)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, count * 8)
    cdef char *start = PyBytes_AS_STRING(made)
    cdef double value
    for at in range(count):
        value = values[at]
        memcpy(start + at * 8, &value, 8)
    return made


cdef inline tuple unpack(bytes doubles):
    cdef Py_ssize_t at, count = PyBytes_GET_SIZE(doubles) // 8
    cdef tuple made = PyTuple_New(count)
    cdef object number
    cdef double value
    for at in range(count):
        memcpy(&value, PyBytes_AS_STRING(doubles) + at * 8, 8)
        number = PyFloat_FromDouble(value)
        Py_INCREF(number)  # the tuple takes one over
        PyTuple_SET_ITEM(made, at, number)
    return made


cdef inline bytes part(bytes packed, Py_ssize_t start, Py_ssize_t stop):
    if start < 0 or stop < start or stop > PyBytes_GET_SIZE(packed):
        raise IndexError(stop)
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(packed) + start, stop - start)


cdef inline Py_ssize_t find(bytes names, bytes name) except -2:
    cdef const char *start = PyBytes_AS_STRING(names)
    cdef Py_ssize_t at
    cdef uint64_t wanted, other
    if PyBytes_GET_SIZE(name) != 8:
        raise ValueError(name)
    memcpy(&wanted, PyBytes_AS_STRING(name), 8)
    for at in range(0, PyBytes_GET_SIZE(names) - 7, 8):
        memcpy(&other, start + at, 8)
        if other == wanted:
            return at
    return -1


cdef inline double double_at(bytes doubles, Py_ssize_t at) except? -1.0:
    cdef double value
    if at < 0 or at + 8 > PyBytes_GET_SIZE(doubles):
        raise IndexError(at)
    memcpy(&value, PyBytes_AS_STRING(doubles) + at, 8)
    return value


cdef inline bytes with_double(bytes doubles, Py_ssize_t at, double value):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(doubles)
    if at < 0 or at > size:
        raise IndexError(at)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, max(size, at + 8))
    cdef char *start = PyBytes_AS_STRING(made)
    memcpy(start, PyBytes_AS_STRING(doubles), size)
    memcpy(start + at, &value, 8)
    return made


cdef inline bytes without(bytes packed, Py_ssize_t at):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(packed)
    if at < 0 or at + 8 > size:
        raise IndexError(at)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size - 8)
    cdef char *start = PyBytes_AS_STRING(made)
    memcpy(start, PyBytes_AS_STRING(packed), at)
    memcpy(start + at, PyBytes_AS_STRING(packed) + at + 8, size - at - 8)
    return made
