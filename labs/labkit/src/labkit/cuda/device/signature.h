// What a kernel's parameters are, as the kernel's side writes it and the runner reads it.
#pragma once
namespace labkit {

struct Parameter {
    char kind;  // p pointer, f floating point, i integer, s structure
    int size;
    char pointee_kind;  // f, i or s; v for void
    int pointee_size;
    bool pointee_is_const;
};
struct Signature {
    int count;
    Parameter parameters[64];
};

}  // namespace labkit
