#!/bin/bash
# What a user of the package does, on a machine whose PID 1 is systemd. Run by test_package.py in a
# folder with the package in two versions; prints a line for each thing that was seen to hold.
set -Eeuo pipefail
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
sockets() { systemctl is-active holdfast.socket holdfast-ro.socket | xargs; }
# Who can read neither the ledger nor the configuration: what is answered, the daemon answered.
as() { setpriv --reuid nobody --regid "$1" --clear-groups -- "${@:2}"; }
restarting() { ! systemctl is-active --quiet holdfast; }
stopped() { # nothing is left that could start it
    [[ $(systemctl is-active holdfast) == inactive && $(sockets) == 'inactive inactive' ]] &&
        [[ -z $(find /run/holdfast -name 'holdfast*.sock') ]]
}

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
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4DHCPServer
      metadata: {name: lan}
      spec: {listenInterfaces: [lan], dns: {upstreamSource: none}}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4DHCPScope
      metadata: {name: lan}
      spec: {server: lan, interface: lan, rangeStart: 192.0.2.100, rangeEnd: 192.0.2.110}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: wan}
      spec: {ifname: wan0, managed: false}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4DHCPAddress
      metadata: {name: wan}
      spec: {interface: wan}
    - apiVersion: plugin.holdfast.dev/v1alpha1
      kind: Plugin
      metadata: {name: who}
      spec: {executable: /opt/who, timeout: 20s}
YAML
    cat >/opt/who <<'SH'
#!/bin/sh
echo "uid $(id -u), $(ls -d /proc/[0-9]* | wc -l) processes" >&2
echo '{"apiVersion": "plugin.holdfast.dev/v1alpha1", "kind": "PluginResult", "status": {"ttl": "1m"}}'
SH
    chmod 755 /opt/who
}

provider() { # at the other end of wan0
    ip netns add isp
    ip link add wan0 type veth peer name isp0 netns isp
    ip link set wan0 up
    ip -n isp address add 100.64.0.1/24 dev isp0
    ip -n isp link set isp0 up
    ip netns exec isp dnsmasq --conf-file=/dev/null --port=0 --pid-file= --user=root \
        --dhcp-leasefile=/tmp/isp.leases --dhcp-range=100.64.0.50,100.64.0.50
}
leased() { holdfast status | grep -q 'Healthy *IPv4DHCPAddress/wan'; }
services() { { systemctl is-active holdfast-dnsmasq holdfast-dhcpcd4-wan0 || true; } | xargs; }

case $HOLDFAST_BOOT in
1)
    dpkg -i holdfast_0.1.0_*.deb >/dev/null
    getent group holdfast >/dev/null
    [[ $(systemctl is-enabled holdfast || true) == disabled ]]
    saw "installed, and nothing started by itself"
    declare_router
    ip link set lo up
    ip route add blackhole 198.51.100.0/24
    provider
    systemctl enable --now holdfast 2>/dev/null
    until_true 30 address
    until_true 30 leased
    holdfast status >/dev/null
    [[ $(sockets) == 'active active' ]]
    [[ $(stat -c %a /var/lib/holdfast /var/lib/holdfast/state.db | xargs) == '700 600' ]]
    [[ $(systemctl show -p WatchdogUSec --value holdfast) == 1min ]]
    saw "enabled: the network is as declared"
    [[ $(services) == 'active active' ]]
    saw "its services run, and one of them has a lease"
    [[ $(cd /run/holdfast && stat -c '%n %a %U %G' *.sock | xargs) == "holdfast-ro.sock 660 root holdfast-ro holdfast.sock 660 root holdfast inner-holdfast-ro.sock 600 root root inner-holdfast.sock 600 root root inner-routes.sock 600 root root routes.sock 660 root holdfast-routes" ]]
    as holdfast holdfast status >/dev/null
    as holdfast-ro holdfast status >/dev/null
    if as holdfast holdfast confirm 2>/tmp/said; then false; fi
    grep -q 'nothing waits to be confirmed' /tmp/said
    if as holdfast-ro holdfast confirm 2>/tmp/said; then false; fi
    grep -q 'permission denied; it is for root and for the group holdfast' /tmp/said
    if as nogroup holdfast status 2>/tmp/said; then false; fi
    grep -q 'permission denied' /tmp/said
    saw "each socket is for its group"
    [[ $(as holdfast-ro holdfast console) == "http://127.0.0.1:9473/?key=$(cat /run/holdfast/console.key)" ]]
    if as nogroup holdfast console 2>/dev/null; then false; fi
    saw "who may read is told the key of the console"
    # No source takes its part, which it is told.
    { holdfast plugin run who --dry-run -o json || true; } | grep -Eq 'uid 65534, [1-9] processes'
    saw "a plugin runs as nobody and sees no process of others"
    ip address del 192.0.2.1/24 dev lan0
    until_true 10 address
    saw "drift repaired"
    before=$(main_pid)
    inode=$(stat -c %i /run/holdfast/holdfast.sock)
    kill -KILL "$before"
    until_true 10 restarting
    as holdfast-ro holdfast status >/dev/null 2>&1
    [[ $(main_pid) != "$before" && $(main_pid) != 0 ]]
    [[ $(stat -c %i /run/holdfast/holdfast.sock) == "$inode" ]]
    address
    saw "killed, and started anew; a command given meanwhile waited"
    sed -i 's/203.0.113.0/203.0.112.0/' /etc/holdfast/router.yaml
    systemctl reload holdfast
    until_true 10 bash -c 'ip route show 203.0.112.0/24 | grep -q lan0'
    saw "reloaded"
    exit 133
    ;;
2)
    provider
    until_true 30 address
    until_true 30 leased
    holdfast status >/dev/null
    saw "as declared after a reboot"
    ip link set lo up
    ip route add blackhole 198.51.100.0/24
    before=$(main_pid)
    ip monitor address route >/tmp/seen &
    monitor=$!
    (until_true 60 restarting && as holdfast-ro holdfast status >/dev/null 2>&1) &
    waiting=$!
    dpkg -i holdfast_0.1.1_*.deb >/dev/null
    wait "$waiting"
    [[ $(main_pid) != "$before" ]]
    [[ $(holdfast --version) == 'holdfast 0.1.1' ]]
    kill "$monitor"
    [[ $(grep -c '203\.0\.112\|192\.0\.2\.1' /tmp/seen || true) == 0 ]]
    saw "upgraded in place, and nothing of the network was touched; a command given meanwhile waited"
    # systemctl waits for the service alone; its sockets are closed right after. Without --quiet it
    # may look at them before that, and warn.
    systemctl --quiet stop holdfast
    until_true 10 stopped
    holdfast status >/dev/null
    sleep 2
    stopped
    address
    ip route show 203.0.112.0/24 | grep -q lan0
    nft list table inet holdfast_filter >/dev/null
    [[ $(services) == 'active active' ]]
    saw "stopped: the data plane stays, and no command starts it again"
    systemctl start holdfast
    kill -KILL "$(main_pid)"
    until_true 10 restarting
    holdfast status >/dev/null 2>/tmp/said &
    waiting=$!
    sleep 0.5
    systemctl --quiet stop holdfast
    if wait "$waiting"; then false; fi
    grep -q 'the daemon ended before it answered' /tmp/said
    until_true 10 stopped
    sleep 2
    stopped
    saw "stopped with a command waiting: it is told"
    systemctl start holdfast.socket
    code=0
    holdfast serve 2>/tmp/said || code=$?
    [[ $code == 4 ]]
    grep -q 'is held by systemd for holdfast.service' /tmp/said
    until_true 30 systemctl is-active holdfast
    systemctl --quiet stop holdfast
    until_true 10 stopped
    holdfast serve 2>/dev/null &
    by_hand=$!
    until_true 30 as holdfast-ro holdfast status
    systemctl start --no-block holdfast
    until_true 10 systemctl is-failed holdfast.socket
    as holdfast-ro holdfast status >/dev/null
    systemctl --quiet stop holdfast
    as holdfast-ro holdfast status >/dev/null
    kill "$by_hand"
    wait "$by_hand"
    systemctl reset-failed
    saw "a daemon started by hand takes no socket of the service, and loses none to it"
    systemctl start holdfast
    [[ $(sockets) == 'active active' ]]
    if holdfast cleanup --yes 2>/tmp/refused; then false; fi
    grep -q 'end it first' /tmp/refused
    systemctl disable --now holdfast 2>/dev/null
    holdfast cleanup --yes >/tmp/cleaned 2>/tmp/operations
    if ip link show lan0 2>/dev/null; then false; fi
    [[ -z $(nft list tables) ]]
    [[ $(services) == 'inactive inactive' ]]
    foreign
    [[ -z $(ip route show proto 72) ]]
    saw "cleaned up: what was owned is gone, what is foreign stays"
    touch /run/holdfast/inner-holdfast.sock # as a killed daemon leaves it
    dpkg -r holdfast >/dev/null 2>&1
    [[ ! -e /usr/bin/holdfast && -z $(find /run/holdfast -name '*.sock') ]]
    [[ -e /var/lib/holdfast/state.db && -e /etc/holdfast/router.yaml ]]
    dpkg -P holdfast >/dev/null 2>&1
    [[ ! -e /var/lib/holdfast && ! -e /usr/lib/holdfast && -e /etc/holdfast/router.yaml ]]
    [[ -z $(find /lib/systemd/system -name 'holdfast*') && ! -e /run/holdfast ]]
    foreign
    saw "removed and purged: the configuration is the user's and stays"
    ;;
esac
