# One step of the image's build: `packages`, `user`, or `claude SOURCE VERSION`. What the base has already is left alone.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

install_packages() {
    echo "installing $*"
    if has apt-get; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
        rm -rf /var/lib/apt/lists/*
    elif has apk; then
        apk add --no-cache "$@"
    elif has dnf; then
        dnf install -y "$@"
        dnf clean all
    else
        return 1
    fi
}

packages() {
    required="" optional=""
    has python3 || required="$required python3"
    has git || required="$required git"
    [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/ssl/cert.pem ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] ||
        required="$required ca-certificates"
    has rg || optional=ripgrep
    # Unquoted on purpose: one word per package.
    # shellcheck disable=SC2086
    if [ -n "$required" ] && ! install_packages $required; then
        echo "the base image lacks$required, and has no package manager: choose another with --base" >&2
        exit 1
    fi
    if [ -n "$optional" ] && ! install_packages "$optional"; then
        echo "without $optional: searching is slower"
    fi
}

user() {
    while IFS=: read -r name _ uid _; do
        if [ "$uid" = 1000 ]; then
            echo "user $name has uid 1000"
            exit 0
        fi
    done </etc/passwd
    grep -q '^agent:' /etc/group 2>/dev/null || echo 'agent:x:1000:' >>/etc/group
    echo 'agent:x:1000:1000:agent:/home/agent:/bin/sh' >>/etc/passwd
    mkdir -p /home/agent
    chown 1000:1000 /home/agent
}

claude() {
    if [ "$1" = npm ]; then
        has npm || install_packages nodejs npm || {
            echo "the base image has no npm, and no package manager: use --claude bundled, or another --base" >&2
            exit 1
        }
        npm install --global "@anthropic-ai/claude-code@$2"
    fi
    if [ "$1" != none ]; then
        DISABLE_AUTOUPDATER=1 HOME=/tmp /bin/sh -c 'claude --version'
    fi
}

"$@"
