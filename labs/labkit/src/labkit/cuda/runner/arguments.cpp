#include "arguments.h"

#include <cstring>

#include "report.h"

[[noreturn]] static void refuse(const char* reason, size_t position, const labkit::Parameter* parameter) {
    Json body = Json::object();
    body.text("reason", reason).number("position", (long long)position);
    if (parameter) {
        body.text("parameter_kind", std::string(1, parameter->kind)).number("parameter_size", parameter->size);
        body.text("pointee_kind", std::string(1, parameter->pointee_kind))
            .number("pointee_size", parameter->pointee_size);
    }
    report_fault("argument", 0, 0, body);
    finish_launch("refused");
}

// Bytes and structures may view any array; numbers must be of the kind and the size that the array has, or whole packs.
static bool pointer_fits(const labkit::Parameter& parameter, const Argument& array) {
    bool whole = parameter.pointee_size % array.element_bytes == 0;
    if (parameter.pointee_kind == 'v' || parameter.pointee_size == 1 || array.element_bytes == 1) return true;
    if (parameter.pointee_kind == 's') return whole;
    return parameter.pointee_size == array.element_bytes && parameter.pointee_kind == array.kind;
}

void check_shared_memory(const Task& task) {
    uint64_t static_bytes = 0;
    for (const Variable& variable : task.variables) static_bytes += variable.is_shared ? variable.bytes : 0;
    if (static_bytes + task.dynamic_shared_bytes <= task.max_shared_bytes) return;
    Json body = Json::object();
    body.text("reason", "shared")
        .number("static", (long long)static_bytes)
        .number("dynamic", (long long)task.dynamic_shared_bytes);
    body.number("limit", (long long)task.max_shared_bytes);
    report_fault("launch", 0, 0, body);
    finish_launch("refused");
}

static bool number_fits(const labkit::Parameter& parameter, const Argument& number) {
    if (number.kind != 'n') return parameter.size == number.element_bytes && parameter.kind == number.kind;
    if (parameter.kind != 'i') return false;
    if (parameter.size == number.element_bytes) return true;
    long long value;
    memcpy(&value, number.bytes.data(), sizeof value);
    int bits = 8 * parameter.size;
    return value >= -(1ll << (bits - 1)) && value < (1ll << bits);
}

static void check_argument(Task& task, size_t i, const labkit::Parameter& parameter) {
    const Argument& argument = task.arguments[i];
    if (argument.is_array) {
        if (parameter.kind != 'p') refuse("array for number", i, &parameter);
        if (!pointer_fits(parameter, argument)) refuse("element", i, &parameter);
        task.memory[argument.region].read_only &= parameter.pointee_is_const;
    } else if (parameter.kind == 'p') {
        if (argument.kind != 'p') refuse("number for pointer", i, &parameter);
    } else if (!number_fits(parameter, argument)) {
        refuse("number", i, &parameter);
    }
}

void check_arguments(Task& task, const labkit::Signature& signature) {
    if ((size_t)signature.count != task.arguments.size()) refuse("count", (size_t)signature.count, nullptr);
    for (size_t i = 0; i < task.arguments.size(); ++i) check_argument(task, i, signature.parameters[i]);
}
