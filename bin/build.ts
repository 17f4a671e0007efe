// `npm run build`: stages the package that others install in `build/server`, for `npm pack` there. It has the paths of the
// checkout, with JavaScript for TypeScript. The packages that it needs have the versions of package-lock.json. Nothing is
// installed or published here.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Lock, licencesOf, shrinkwrapOf } from './build/shrinkwrap.ts'

interface Manifest {
  name: string
  version: string
  description: string
  license: string
  bin: Record<string, string>
  dependencies: Record<string, string>
  optionalDependencies: Record<string, string>
}

/** What the program or its operator reads, beside the compiled sources. */
const COPIED = [
  'bin/launch.mjs',
  'bin/tokenmill.mjs',
  'CHANGELOG.md',
  'docs',
  'ops',
  'producers/console/browser',
  'README.md',
  'src/store/migrations',
] as const
/** Below those: pictures, generated pages of the classes of columns, and files for those who change or build tokenmill. */
const LEFT_OUT = /^docs\/(decisions|performance|pictures)$|^src\/.*\.json$|\.Dockerfile$|^ops\/compose$|\.test\.yml$/
/** The Node of the checkout. npm would put it first in the scripts of whoever installs the package. */
const OF_CHECKOUT = /^node-linux-/

const root = fileURLToPath(new URL('..', import.meta.url))
const out = join(root, 'build/server')

function compile(): void {
  const tsc = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', join(root, 'tsconfig.server.json')], {
    stdio: 'inherit',
  })
  if (tsc.status !== 0) throw new Error('the sources do not compile; see the lines above')
}

function copy(): void {
  for (const path of COPIED)
    cpSync(join(root, path), join(out, path), {
      recursive: true,
      filter: source => !LEFT_OUT.test(source.slice(root.length)),
    })
  chmodSync(join(out, 'bin/tokenmill.mjs'), 0o755)
}

function manifestOf(checkout: Manifest) {
  const { name, version, description, license, bin, dependencies, optionalDependencies } = checkout
  const { dependencies: peers } = readJson('src/vault/pkcs11/package.json') as Manifest
  return {
    name,
    version,
    description,
    private: true,
    license,
    type: 'module',
    engines: { node: '>=24' },
    bin,
    dependencies,
    optionalDependencies: Object.fromEntries(
      Object.entries(optionalDependencies).filter(([optional]) => !OF_CHECKOUT.test(optional)),
    ),
    // Needs a compiler, so that only those install it whose key-encryption key is in an HSM.
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map(peer => [peer, { optional: true }])),
  }
}

const readJson = (path: string): unknown => JSON.parse(readFileSync(join(root, path), 'utf8'))

function writeJson(name: string, value: unknown): void {
  writeFileSync(join(out, name), `${JSON.stringify(value, null, 2)}\n`)
}

rmSync(out, { recursive: true, force: true })
compile()
copy()
const manifest = manifestOf(readJson('package.json') as Manifest)
const shrinkwrap = shrinkwrapOf(manifest, readJson('package-lock.json') as Lock)
writeJson('package.json', manifest)
writeJson('npm-shrinkwrap.json', shrinkwrap)
writeFileSync(join(out, 'licences.txt'), licencesOf(shrinkwrap))
