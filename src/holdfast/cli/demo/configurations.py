"""The demo's router file, as it is edited along the way."""

from __future__ import annotations

_HEAD = """\
apiVersion: holdfast.dev/v1alpha1
kind: Router
metadata: {name: demo}
spec:
  resources:
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: wan}
      spec: {ifname: wan0, adminUp: true, mtu: 1500}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: Interface
      metadata: {name: lan}
      spec: {ifname: lan0, type: bridge, adminUp: true}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: wan}
      spec: {interface: wan, address: 192.0.2.1/24}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4StaticAddress
      metadata: {name: lan}
      spec: {interface: lan, address: 10.1.0.1/24}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {name: default}
      spec: {destination: default, gateway: 192.0.2.254, interface: wan}
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: RouteList
      metadata: {name: branches}
      spec:
        gateway: 192.0.2.253
        interface: wan
        routes: [10.20.0.0/16, 10.21.0.0/16, 10.22.0.0/16, 10.23.0.0/16]
"""

_VOICE = """\
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {name: voice}
      spec: {destination: 10.30.0.0/16, gateway: 192.0.2.252, interface: wan}
"""

_LAB = """\
    - apiVersion: net.holdfast.dev/v1alpha1
      kind: IPv4Route
      metadata: {name: lab}
      spec: {destination: 10.40.0.0/16, gateway: 192.0.2.251, interface: wan}
"""

FIRST = _HEAD + _VOICE
WITHOUT_VOICE = _HEAD
WITH_LAB = _HEAD + _LAB
