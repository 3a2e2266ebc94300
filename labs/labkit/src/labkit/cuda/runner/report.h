// The report: faults and figures of one launch, as JSON on a descriptor of its own. Nothing that a kernel prints goes
// there. Words and lines are put together outside, from the source.
#pragma once
#include <cstdint>
#include <string>

#include "launch.h"

// A JSON object or array under construction.
class Json {
public:
    static Json object() { return Json('{', '}'); }
    static Json array() { return Json('[', ']'); }
    Json& text(const char* key, const std::string& value);
    Json& number(const char* key, long long value);
    Json& raw(const char* key, const std::string& json);
    Json& append(const Json& item);
    Json& append(long long number);
    std::string str() const { return body_ + close_; }

private:
    Json(char open, char close) : body_(1, open), close_(close) {}
    void separate() {
        if (body_.size() > 1) body_ += ',';
    }
    std::string body_;
    char close_;
};

std::string json_of(Index3 index);
std::string block_of_current_launch();

// The block and the thread that runs, to begin the body of a fault with.
Json where_now();
Json where(const Thread& thread);

// Keep a fault; of those with the same kind and places only the first, and a count.
void report_fault(const char* kind, uint64_t place, uint64_t other_place, const Json& body);

void set_report_descriptor(int descriptor);

// Write the report and end the process. Status: ok, fault, time_limit or refused.
[[noreturn]] void finish_launch(const char* status);

// The machine failed us, not the kernel: say why on standard error and end with another exit status.
[[noreturn]] void give_up(const std::string& why);
