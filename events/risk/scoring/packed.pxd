from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
# The functions of packed.py in C, on a little-endian machine.

cdef enum:
    NAME = 8
    NUMBER = 8

ctypedef (
    double, double, double, double, double, double, double, double, double, double, double, double,
    double, double, double, double, double, double, double, double, double, double, double
) Numbers

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

cdef inline bytes pack_numbers(Numbers values):
    return PyBytes_FromStringAndSize(<char *>&values, sizeof(Numbers))

cdef inline Numbers numbers_at(bytes data, Py_ssize_t at) except *:
    cdef Numbers values
    if at < 0 or at + <Py_ssize_t>sizeof(Numbers) > PyBytes_GET_SIZE(data):
        raise IndexError(at)
    memcpy(&values, PyBytes_AS_STRING(data) + at, sizeof(Numbers))
    return values

cdef inline bint are_finite(bytes data, Py_ssize_t start, Py_ssize_t end) except -1:
    cdef Py_ssize_t at
    cdef double value
    for at in range(start, end, 8):
        value = double_at(data, at)
        if value - value != 0.0:
            return False
    return True

cdef inline bytes part(bytes data, Py_ssize_t start, Py_ssize_t end):
    if not 0 <= start <= end <= PyBytes_GET_SIZE(data):
        raise IndexError(start)
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + start, end - start)

cdef inline double count_at(bytearray counts, Py_ssize_t place) except? -1.0:
    cdef double value
    if place < 0 or place * 8 + 8 > PyByteArray_GET_SIZE(counts):
        raise IndexError(place)
    memcpy(&value, PyByteArray_AS_STRING(counts) + place * 8, 8)
    return value

cdef inline int put(bytearray counts, Py_ssize_t place, double value) except -1:
    if place < 0 or place * 8 + 8 > PyByteArray_GET_SIZE(counts):
        raise IndexError(place)
    memcpy(PyByteArray_AS_STRING(counts) + place * 8, &value, 8)
    return 0

cdef inline Py_ssize_t find(bytes table, bytes name) except -2:
    cdef uint64_t wanted, other
    cdef Py_ssize_t at, half = PyBytes_GET_SIZE(table) // 2
    if PyBytes_GET_SIZE(name) != 8:
        raise ValueError(name)
    memcpy(&wanted, PyBytes_AS_STRING(name), 8)
    for at in range(0, half - 7, 8):
        memcpy(&other, PyBytes_AS_STRING(table) + at, 8)
        if other == wanted:
            return half + at
    return -1

cdef inline double double_at(bytes table, Py_ssize_t at) except? -1.0:
    cdef double value
    if at < 0 or at + 8 > PyBytes_GET_SIZE(table):
        raise IndexError(at)
    memcpy(&value, PyBytes_AS_STRING(table) + at, 8)
    return value

cdef inline Py_ssize_t least(bytes table) except -1:
    cdef Py_ssize_t at, found = PyBytes_GET_SIZE(table) // 2
    cdef double value, lowest = double_at(table, found)
    for at in range(found + 8, PyBytes_GET_SIZE(table), 8):
        value = double_at(table, at)
        if value < lowest:
            found, lowest = at, value
    return found

cdef inline bytes without(bytes table, Py_ssize_t at):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(table), named = at - size // 2
    if named < 0 or at + 8 > size:
        raise IndexError(at)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size - 16)
    memcpy(PyBytes_AS_STRING(made), PyBytes_AS_STRING(table), named)
    memcpy(PyBytes_AS_STRING(made) + named, PyBytes_AS_STRING(table) + named + 8, at - named - 8)
    memcpy(PyBytes_AS_STRING(made) + at - 8, PyBytes_AS_STRING(table) + at + 8, size - at - 8)
    return made

cdef inline bytes with_name(bytes table, bytes name, double value):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(table), half = size // 2
    if PyBytes_GET_SIZE(name) != 8:
        raise ValueError(name)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size + 16)
    memcpy(PyBytes_AS_STRING(made), PyBytes_AS_STRING(table), half)
    memcpy(PyBytes_AS_STRING(made) + half, PyBytes_AS_STRING(name), 8)
    memcpy(PyBytes_AS_STRING(made) + half + 8, PyBytes_AS_STRING(table) + half, half)
    memcpy(PyBytes_AS_STRING(made) + size + 8, &value, 8)
    return made

cdef inline bytes with_double(bytes table, Py_ssize_t at, double value):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(table)
    if at < 0 or at > size:
        raise IndexError(at)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, max(size, at + 8))
    memcpy(PyBytes_AS_STRING(made), PyBytes_AS_STRING(table), size)
    memcpy(PyBytes_AS_STRING(made) + at, &value, 8)
    return made
