// Undefined behaviour: calls that the compiler puts where an operation has no defined result
// (-fsanitize=bounds,alignment,shift-exponent,…). Each carries file, line and column of the source.
#include "access.h"
#include "memory.h"
#include "report.h"
#include "scheduler.h"

namespace {
struct SourceLocation {
    const char* file;
    unsigned line, column;
};
struct TypeDescription {
    unsigned short kind, information;
    char name[1];
    bool is_signed() const { return information & 1; }
    int bits() const { return 1 << (information >> 1); }
};

long long integer_value(const TypeDescription* type, uintptr_t value) {
    if (type->kind != 0 || type->bits() > 64) return 0;
    int unused = 64 - type->bits();
    return type->is_signed() ? (long long)((uint64_t)value << unused) >> unused : (long long)value;
}

void report_at(const char* kind, const SourceLocation& at, Json& body) {
    finish_pending_write();
    body.number("line", at.line);
    report_fault(kind, at.line, at.column, body);
}

[[noreturn]] void stop_at(const char* kind, const SourceLocation& at, Json& body) {
    report_at(kind, at, body);
    finish_launch("fault");
}

struct OutOfBounds {
    SourceLocation at;
    const TypeDescription *array, *index;
};
struct TypeMismatch {
    SourceLocation at;
    const TypeDescription* type;
    unsigned char log_alignment, kind;
};
struct Shift {
    SourceLocation at;
    const TypeDescription *left, *right;
};
struct OnlyLocation {
    SourceLocation at;
};
}  // namespace

extern "C" void __ubsan_handle_out_of_bounds(OutOfBounds* data, uintptr_t index) {
    Json body = where_now();
    body.text("space", "declared").number("index", integer_value(data->index, index)).text("type", data->array->name);
    stop_at("out_of_bounds", data->at, body);
}

// An access that leaves the array its pointer points into, as far as the compiler follows the pointer. Where nothing
// lies, the check of the access itself says more.
static void judge_leaving(TypeMismatch* data, uintptr_t address) {
    bool is_local = address - (uintptr_t)current->stack < stack_bytes;
    if (!is_local && !region_of(address, 1)) return;
    Json body = where_now();
    if (is_local) body.text("space", "local");
    describe_bad_place(body, address);
    body.text("type", data->type->name);
    stop_at("out_of_bounds", data->at, body);
}

extern "C" void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, uintptr_t address) {
    if (data->log_alignment == 0) return judge_leaving(data, address);
    uintptr_t alignment = (uintptr_t)1 << data->log_alignment;
    if ((address & (alignment - 1)) == 0) return;  // null and out of bounds are said at the access itself
    if (address - (uintptr_t)current->stack < stack_bytes) return;  // a GPU's compiler aligns local arrays for vectors
    Json body = where_now();
    body.text("type", data->type->name).number("alignment", (long long)alignment);
    describe_bad_place(body, address);
    stop_at("misaligned", data->at, body);
}

extern "C" void __ubsan_handle_shift_out_of_bounds(Shift* data, uintptr_t, uintptr_t by) {
    Json body = where_now();
    body.number("by", integer_value(data->right, by)).text("type", data->left->name);
    report_at("shift", data->at, body);
}

extern "C" void __ubsan_handle_divrem_overflow(OnlyLocation* data, uintptr_t, uintptr_t) {
    Json body = where_now();
    stop_at("division_by_zero", data->at, body);
}

extern "C" void __ubsan_handle_float_cast_overflow(OnlyLocation* data, uintptr_t) {
    Json body = where_now();
    report_at("float_to_integer", data->at, body);
}

extern "C" void __ubsan_handle_missing_return(OnlyLocation* data) {
    Json body = where_now();
    stop_at("missing_return", data->at, body);
}

extern "C" void __ubsan_handle_builtin_unreachable(OnlyLocation* data) {
    Json body = where_now();
    stop_at("missing_return", data->at, body);
}

extern "C" void labkit_trap(int line) {
    Json body = where_now();
    stop_at("trap", {nullptr, (unsigned)line, 0}, body);
}

extern "C" void labkit_assertion(const char* condition, int line) {
    Json body = where_now();
    body.text("condition", condition);
    stop_at("assertion", {nullptr, (unsigned)line, 0}, body);
}
