// How the runner enters a kernel: one function and one description of the parameters for each kernel.
#pragma once
#include "signature.h"

namespace labkit {

template <class T>
struct Plain {
    typedef T type;
};
template <class T>
struct Plain<const T> {
    typedef T type;
};
template <class T>
struct Plain<volatile T> {
    typedef T type;
};
template <class T>
struct Plain<const volatile T> {
    typedef T type;
};

// Functions and enumerators: without -fweak a static constexpr member is not one variable.
template <class T>
struct IsFloat {
    enum { value = 0 };
};
template <>
struct IsFloat<float> {
    enum { value = 1 };
};
template <>
struct IsFloat<double> {
    enum { value = 1 };
};

template <class T>
constexpr char kind_of() {
    return IsFloat<T>::value ? 'f' : __is_class(T) || __is_union(T) ? 's' : 'i';
}

template <class T>
struct Describe {
    static constexpr Parameter parameter() { return {kind_of<T>(), (int)sizeof(T), ' ', 0, false}; }
};
template <class T>
struct Describe<T*> {
    typedef typename Plain<T>::type Pointee;
    enum { is_const = __is_same(T, const Pointee) || __is_same(T, const volatile Pointee) };
    static constexpr Parameter parameter() { return {'p', sizeof(T*), kind_of<Pointee>(), sizeof(Pointee), is_const}; }
};
template <>
struct Describe<void*> {
    static constexpr Parameter parameter() { return {'p', sizeof(void*), 'v', 1, false}; }
};
template <>
struct Describe<const void*> {
    static constexpr Parameter parameter() { return {'p', sizeof(void*), 'v', 1, true}; }
};

template <class... Arguments>
constexpr Signature labkit_signature_of(void (*)(Arguments...)) {
    return Signature{sizeof...(Arguments), {Describe<typename Plain<Arguments>::type>::parameter()...}};
}

template <int... Indices>
struct Sequence {};
template <int N, int... Indices>
struct Counting : Counting<N - 1, N - 1, Indices...> {};
template <int... Indices>
struct Counting<0, Indices...> {
    typedef Sequence<Indices...> type;
};

// arguments: one pointer to each value, as cuLaunchKernel takes them
template <class... Arguments, int... Indices>
LABKIT_UNCHECKED inline void labkit_enter_kernel(void (*kernel)(Arguments...), void** arguments, Sequence<Indices...>) {
    kernel(*(typename Plain<Arguments>::type*)arguments[Indices]...);
}
template <class... Arguments>
LABKIT_UNCHECKED inline void labkit_enter_kernel(void (*kernel)(Arguments...), void** arguments) {
    labkit_enter_kernel(kernel, arguments, typename Counting<sizeof...(Arguments)>::type());
}

}  // namespace labkit

// Behind the kernel's own macros: nothing here may have a name that one of them could have.
#define LABKIT_VISIBLE __attribute__((visibility("default")))
#define LABKIT_ENTRY(labkit_number, labkit_kernel)                                                          \
    extern "C" {                                                                                            \
    LABKIT_UNCHECKED LABKIT_VISIBLE void labkit_enter_##labkit_number(void** labkit_arguments) {            \
        labkit::labkit_enter_kernel(&labkit_kernel, labkit_arguments);                                      \
    }                                                                                                       \
    extern LABKIT_VISIBLE const labkit::Signature labkit_signature_##labkit_number;                         \
    const labkit::Signature labkit_signature_##labkit_number = labkit::labkit_signature_of(&labkit_kernel); \
    }
