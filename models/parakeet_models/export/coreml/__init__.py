"""Core ML packages of a network: fixed shapes, the Neural Engine's layout. Needs the extras ``convert`` and ``coreml``.

``bundle.write_package_bundle`` is the way in. Everything here works on Linux; only running a package needs a Mac.
"""
