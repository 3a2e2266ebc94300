#include "report.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <tuple>
#include <vector>

#include "branches.h"
#include "traffic.h"

// The character at a byte of UTF-8, and the byte behind it; U+FFFD for a byte that begins none.
static uint32_t next_character(const std::string& text, size_t& at) {
    const uint32_t unreadable = 0xfffd, least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t first = (unsigned char)text[at++];
    if (first < 0x80) return first;
    int length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    uint32_t character = first & (0x7fu >> length);
    if (first < 0xc0 || first >= 0xf8 || at + length - 1 > text.size()) return unreadable;
    for (int i = 0; i < length - 1; ++i) {
        uint32_t next = (unsigned char)text[at + i];
        if (next >> 6 != 2) return unreadable;
        character = character << 6 | (next & 0x3f);
    }
    bool is_surrogate = character >> 11 == 0x1b;
    if (character < least[length] || character > 0x10ffff || is_surrogate) return unreadable;
    at += length - 1;
    return character;
}

static std::string escaped(uint32_t unit) {
    char text[8];
    snprintf(text, sizeof text, "\\u%04x", unit);
    return text;
}

// A JSON string in ASCII alone: so a report can be read whatever bytes a source or a kernel holds.
static std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (size_t at = 0; at < text.size();) {
        uint32_t c = next_character(text, at);
        if (c == '"' || c == '\\') {
            result += {'\\', (char)c};
        } else if (c >= 0x20 && c < 0x7f) {
            result += (char)c;
        } else if (c < 0x10000) {
            result += escaped(c);
        } else {
            result += escaped(0xd800 + ((c - 0x10000) >> 10)) + escaped(0xdc00 + ((c - 0x10000) & 0x3ff));
        }
    }
    return result + "\"";
}

Json& Json::raw(const char* key, const std::string& json) {
    separate();
    body_ += quoted(key) + ":" + json;
    return *this;
}
Json& Json::text(const char* key, const std::string& value) { return raw(key, quoted(value)); }
Json& Json::number(const char* key, long long value) { return raw(key, std::to_string(value)); }
Json& Json::append(const Json& item) {
    separate();
    body_ += item.str();
    return *this;
}
Json& Json::append(long long number) {
    separate();
    body_ += std::to_string(number);
    return *this;
}

std::string json_of(Index3 index) { return Json::array().append(index.x).append(index.y).append(index.z).str(); }
std::string block_of_current_launch() { return json_of(launch.block_index); }

Json where(const Thread& thread) {
    Json body = Json::object();
    body.raw("block", block_of_current_launch()).raw("thread", json_of(thread.position));
    return body;
}
Json where_now() { return where(*current); }

namespace {
struct Fault {
    std::string kind;
    Json body;
    long long count;
};
const size_t max_faults = 50;
std::vector<Fault> faults;
std::map<std::tuple<std::string, uint64_t, uint64_t>, size_t> known_faults;
int report_descriptor = -1;
}  // namespace

void report_fault(const char* kind, uint64_t place, uint64_t other_place, const Json& body) {
    auto key = std::make_tuple(std::string(kind), place, other_place);
    auto known = known_faults.find(key);
    if (known != known_faults.end()) {
        ++faults[known->second].count;
    } else if (faults.size() < max_faults) {
        known_faults[key] = faults.size();
        faults.push_back({kind, body, 1});
    }
}

void set_report_descriptor(int descriptor) { report_descriptor = descriptor; }

static double cpu_seconds() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void write_all(const std::string& text) {
    for (unsigned char c : text) {
        if (c >= 0x80) give_up("the report is no ASCII text");
    }
    for (size_t done = 0; done < text.size();) {
        ssize_t n = write(report_descriptor, text.data() + done, text.size() - done);
        if (n <= 0) _exit(4);
        done += (size_t)n;
    }
}

void finish_launch(const char* status) {
    Json list = Json::array();
    for (Fault& fault : faults) {
        fault.body.text("kind", fault.kind).number("count", fault.count);
        list.append(fault.body);
    }
    Json report = Json::object();
    report.text("status", status).number("cpu_us", (long long)(1e6 * cpu_seconds()));
    report.raw("faults", list.str()).raw("traffic", traffic_as_json());
    report.raw("branches", branches_as_json());
    fflush(stdout);
    write_all(report.str());
    _exit(0);
}

void give_up(const std::string& why) {
    fprintf(stderr, "%s\n", why.c_str());
    _exit(3);
}
