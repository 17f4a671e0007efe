-- A destroyed capture key names no key of the vault. Rows that were destroyed before kept these names, and no pass changes such
-- a row: the versions of `private-half` and `grant` that they named could never be destroyed.
update tokenmill.capture_key set kek_id = null, private_version = null, mac = null, mac_version = null where state = 'DESTROYED';
