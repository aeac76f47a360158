#!/bin/sh
# Makes a repository to try the fleet with: origin.git, the remote, and checkout/, the clone that worktrees are made of.
# The remote takes a push only with the token of push-token, as a server on the network would.
set -eu
cd "$(dirname "$0")"
if [ -e checkout ] || [ -e origin.git ] || [ -e push-token ]; then
    echo "checkout, origin.git or push-token is there already" >&2
    exit 1
fi
git init --quiet --bare origin.git
(umask 077 && head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' > push-token)
cat > origin.git/hooks/pre-receive <<EOF
#!/bin/sh
[ "\${PUSH_TOKEN:-}" = "\$(cat '$PWD/push-token')" ] || { echo "a token is needed to push" >&2; exit 1; }
EOF
chmod +x origin.git/hooks/pre-receive
git init --quiet checkout
cd checkout
git checkout --quiet -b main
git config user.name reviewer
git config user.email reviewer@localhost
git remote add origin "$(dirname "$PWD")/origin.git"
cat > pricing.py <<'EOF'
"""What a customer pays."""


def total(prices, discount=0):
    """The sum of the prices, less a discount in percent."""
    return sum(prices) * (100 + discount) / 100
EOF
cat > test_pricing.py <<'EOF'
import unittest

from pricing import total


class Pricing(unittest.TestCase):
    def test_a_discount_makes_things_cheaper(self):
        self.assertEqual(total([30, 70], discount=20), 80)
EOF
git add --all
git commit --quiet -m "Add discounts"
PUSH_TOKEN=$(cat ../push-token) git push --quiet origin main
