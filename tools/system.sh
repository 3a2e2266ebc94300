#!/bin/sh
# system.sh install|require PACKAGE...: the Debian packages that Python's own cannot replace.
# `install` adds what is missing when run as root and otherwise does nothing; `require` ends
# with 1 and the one command to type when something is still missing. Nothing here calls sudo.
set -eu

program_of() {
    case $1 in
        bubblewrap) echo bwrap ;;
        python3-venv) echo "${PYTHON:-python3}" ;;
        *) echo "$1" ;;
    esac
}

is_there() {
    if [ "$1" = python3-venv ]; then
        "$(program_of "$1")" -c 'import ensurepip, venv' 2>/dev/null
    else
        command -v "$(program_of "$1")" >/dev/null
    fi
}

verb=$1
shift
missing=
for package in "$@"; do
    is_there "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$verb" = install ]; then
    [ "$(id -u)" = 0 ] || exit 0
    command -v apt-get >/dev/null || exit 0
    echo "installing$missing"
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of package names
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    exit 0
fi

echo "Everything else is done; these are missing:$missing. As an administrator run:" >&2
echo "    apt-get install -y$missing" >&2
exit 1
