#!/bin/bash
# What a user of the package does, on a machine whose PID 1 is systemd. Run by test_package.py in a
# folder with the package in two versions; prints a line for each thing that was seen to hold.
set -euo pipefail
trap 'echo "failed at line $LINENO: $BASH_COMMAND"; systemctl status holdfast --no-pager -n 30 || true; journalctl -u holdfast --no-pager -n 40 || true' ERR

saw() { echo "saw: $*"; }
until_true() { # SECONDS COMMAND...
    local deadline=$((SECONDS + $1)); shift
    until "$@" >/dev/null 2>&1; do
        if ((SECONDS >= deadline)); then echo "in vain: $*"; return 1; fi
        sleep 0.1
    done
}
address() { ip -o address show dev lan0 | grep -q '192\.0\.2\.1/24'; }
foreign() { ip route show 198.51.100.0/24 | grep -q blackhole; }
main_pid() { systemctl show -p MainPID --value holdfast; }

declare_router() {
    cat >/etc/holdfast/router.yaml <<'YAML'
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: packaged}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: lan}
      spec: {ifname: lan0, type: veth, adminUp: true, veth: {peer: lan1}}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: lan}
      spec: {interface: lan, address: 192.0.2.1/24}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {name: lab}
      spec: {destination: 203.0.113.0/24, gateway: 192.0.2.254}
    - apiVersion: firewall.holdfast.dev/v1alpha1
      kind: Zone
      metadata: {name: lan}
      spec: {interfaces: [lan]}
    - apiVersion: firewall.holdfast.dev/v1alpha1
      kind: FirewallPolicy
      metadata: {name: home}
      spec: {}
YAML
}

case $HOLDFAST_BOOT in
1)
    dpkg -i holdfast_0.1.0_*.deb >/dev/null
    getent group holdfast >/dev/null
    [[ $(systemctl is-enabled holdfast || true) == disabled ]]
    saw "installed, and nothing started by itself"
    declare_router
    ip link set lo up
    ip route add blackhole 198.51.100.0/24
    systemctl enable --now holdfast 2>/dev/null
    until_true 30 address
    holdfast status >/dev/null
    [[ $(stat -c '%a %G' /run/holdfast/holdfast.sock) == '660 holdfast' ]]
    [[ $(stat -c %a /var/lib/holdfast /var/lib/holdfast/state.db | xargs) == '700 600' ]]
    [[ $(systemctl show -p WatchdogUSec --value holdfast) == 1min ]]
    saw "enabled: the network is as declared"
    ip address del 192.0.2.1/24 dev lan0
    until_true 10 address
    saw "drift repaired"
    before=$(main_pid)
    kill -KILL "$before"
    until_true 30 bash -c "[[ \$(systemctl show -p MainPID --value holdfast) != 0 && \$(systemctl show -p MainPID --value holdfast) != $before ]]"
    until_true 30 holdfast status
    address
    saw "killed, and started anew"
    sed -i 's/203.0.113.0/203.0.112.0/' /etc/holdfast/router.yaml
    systemctl reload holdfast
    until_true 10 bash -c 'ip route show 203.0.112.0/24 | grep -q lan0'
    saw "reloaded"
    exit 133
    ;;
2)
    until_true 30 address
    until_true 30 holdfast status
    saw "as declared after a reboot"
    ip link set lo up
    ip route add blackhole 198.51.100.0/24
    before=$(main_pid)
    ip monitor address route >/tmp/seen &
    monitor=$!
    dpkg -i holdfast_0.1.1_*.deb >/dev/null
    until_true 30 bash -c "[[ \$(systemctl show -p MainPID --value holdfast) != $before ]]"
    until_true 30 holdfast status
    [[ $(holdfast --version) == 'holdfast 0.1.1' ]]
    kill "$monitor"
    [[ $(grep -c '203\.0\.112\|192\.0\.2\.1' /tmp/seen || true) == 0 ]]
    saw "upgraded in place, and nothing of the network was touched"
    systemctl stop holdfast
    address
    ip route show 203.0.112.0/24 | grep -q lan0
    nft list table inet holdfast_filter >/dev/null
    saw "stopped: the data plane stays"
    systemctl start holdfast
    if holdfast cleanup --yes 2>/tmp/refused; then false; fi
    grep -q 'end it first' /tmp/refused
    systemctl disable --now holdfast 2>/dev/null
    holdfast cleanup --yes >/tmp/cleaned
    if ip link show lan0 2>/dev/null; then false; fi
    [[ -z $(nft list tables) ]]
    foreign
    [[ -z $(ip route show proto 72) ]]
    saw "cleaned up: what was owned is gone, what is foreign stays"
    dpkg -r holdfast >/dev/null 2>&1
    [[ ! -e /usr/bin/holdfast ]]
    [[ -e /var/lib/holdfast/state.db && -e /etc/holdfast/router.yaml ]]
    dpkg -P holdfast >/dev/null 2>&1
    [[ ! -e /var/lib/holdfast && ! -e /usr/lib/holdfast && -e /etc/holdfast/router.yaml ]]
    [[ ! -e /lib/systemd/system/holdfast.service ]]
    foreign
    saw "removed and purged: the configuration is the user's and stays"
    ;;
esac
