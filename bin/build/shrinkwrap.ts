// The npm-shrinkwrap.json of the package: the part of package-lock.json that a manifest's dependencies reach. npm installs
// exactly that, also where the package is itself a dependency.

interface LockedPackage {
  version?: string
  license?: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  optional?: boolean
  /** Needed by a tool, or optional. */
  devOptional?: boolean
}

export interface Lock {
  name: string
  version: string
  lockfileVersion: number
  /** By path from the root, such as `node_modules/a/node_modules/b`. */
  packages: Record<string, LockedPackage>
}

/** The part of a manifest that says what a package needs. */
export interface Needs {
  name: string
  version: string
  dependencies: Record<string, string>
  optionalDependencies: Record<string, string>
}

export function shrinkwrapOf(manifest: Needs, lock: Lock): Lock {
  const { name, version } = manifest
  const reached = reach({ ...manifest.dependencies, ...manifest.optionalDependencies }, lock, { optional: true })
  const required = reach(manifest.dependencies, lock, { optional: false })
  const packages = Object.entries(lock.packages)
    .filter(([path]) => reached.has(path))
    // In the lock of the checkout other packages are optional.
    .map(([path, { optional: _, devOptional: __, ...one }]) => [
      path,
      { ...one, ...(!required.has(path) && { optional: true }) },
    ])
  return {
    name,
    version,
    lockfileVersion: lock.lockfileVersion,
    packages: { '': manifest, ...Object.fromEntries(packages) },
  }
}

/**
 * The paths of all packages that these need. `optional`: also of those that a package needs only if they fit, so that only
 * other systems may install them.
 */
function reach(
  needed: Readonly<Record<string, string>>,
  { packages }: Lock,
  { optional }: { optional: boolean },
): Set<string> {
  const reached = new Set<string>()
  const waiting = Object.keys(needed).map(name => ({ name, from: '' }))
  for (const { name, from } of waiting) {
    const path = resolve(name, from, packages)
    if (path === undefined || reached.has(path)) continue
    reached.add(path)
    const { dependencies: needs, optionalDependencies: may, peerDependencies: peers } = packages[path] ?? {}
    const next = { ...needs, ...peers, ...(optional ? may : {}) }
    for (const name of Object.keys(next)) waiting.push({ name, from: path })
  }
  return reached
}

/** Where Node finds a package: below the one that needs it, or in a folder above. Undefined for a peer that is not there. */
function resolve(name: string, from: string, packages: Lock['packages']): string | undefined {
  const path = from === '' ? `node_modules/${name}` : `${from}/node_modules/${name}`
  if (path in packages) return path
  if (from === '') return undefined
  const above = from.slice(0, Math.max(0, from.lastIndexOf('node_modules/') - 1))
  return resolve(name, above, packages)
}

/** A line for each package: its name, its version and its licence. */
export function licencesOf({ packages }: Lock): string {
  const lines = Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, { version, license }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      return `${name} ${version} ${license ?? 'not stated'}`
    })
  return `${[...new Set(lines)].sort().join('\n')}\n`
}
