// Makes tokens of SoftHSM 2 (Debian: softhsm2). Tests that need them are skipped if SoftHSM, a C compiler or the
// binding is missing; REQUIRE_SOFTHSM=1 makes that a failure (test/support/run/setup.ts).
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadBinding } from '../../../src/vault/pkcs11/binding.ts'
import { makeToken, type WantedKey } from './token-maker.ts'

const MODULES = ['/usr/lib/softhsm/libsofthsm2.so', '/usr/local/lib/softhsm/libsofthsm2.so']
const HEADERS = fileURLToPath(
  new URL('../../../src/vault/pkcs11/node_modules/pkcs11js/includes/pkcs11', import.meta.url),
)
const SHIM = fileURLToPath(new URL('./shim.c', import.meta.url))

/** What is missing, in words. */
export function missingSoftHsm(): string[] {
  return [
    ...(modulePath() === undefined ? ['no SoftHSM (Debian: softhsm2)'] : []),
    ...(spawnSync('cc', ['--version']).error ? ['no C compiler (Debian: build-essential)'] : []),
    ...(isBuilt() ? [] : ['no PKCS#11 binding (npm run build:pkcs11)']),
  ]
}

function modulePath(): string | undefined {
  return MODULES.find(path => existsSync(path))
}

function isBuilt(): boolean {
  try {
    loadBinding()
    return true
  } catch {
    return false
  }
}

export interface SoftHsm {
  /** The folder of the tokens; without it no token is present. */
  tokens: string
  /** The value of SOFTHSM2_CONF until `close`, for processes with another environment. */
  configPath: string
  modulePath: string
  /** Compiles shim.c: a module that draws its own nonces for AES-GCM and makes trouble on demand, with SoftHSM behind it. */
  compileShim(): string
  /** The folder whose files tell the shim which errors to cause. */
  shimFolder: string
  /** Writes a file of mode 0600 and names it. */
  pinFile(pin: string): Promise<string>
  /** Initializes a token, with an AES key of each label. */
  makeToken(label: string, pin: string, keys: readonly WantedKey[]): void
  close(): Promise<void>
}

/** Processes that are started until `close` find these tokens and no others. */
export async function openSoftHsm(): Promise<SoftHsm> {
  const path = modulePath()
  if (path === undefined) throw new Error('SoftHSM is absent')
  const folder = await mkdtemp(join(tmpdir(), 'tokenmill-softhsm-'))
  const tokens = join(folder, 'tokens')
  await mkdir(tokens)
  const config = join(folder, 'softhsm2.conf')
  await writeFile(config, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`)
  const before = process.env['SOFTHSM2_CONF']
  process.env['SOFTHSM2_CONF'] = config
  process.env['SHIM_FOLDER'] = folder
  let pins = 0
  return {
    tokens,
    configPath: config,
    modulePath: path,
    compileShim: () => compileShim(folder, path),
    shimFolder: folder,
    async pinFile(pin) {
      pins += 1
      const file = join(folder, `pin-${pins}`)
      await writeFile(file, `${pin}\n`, { mode: 0o600 })
      return file
    },
    makeToken: (label, pin, keys) => makeToken(path, label, pin, keys),
    async close() {
      if (before === undefined) delete process.env['SOFTHSM2_CONF']
      else process.env['SOFTHSM2_CONF'] = before
      delete process.env['SHIM_FOLDER']
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function compileShim(folder: string, module: string): string {
  const into = join(folder, 'shim.so')
  const words = ['-shared', '-fPIC', `-DTOKEN_MODULE="${module}"`, '-I', HEADERS, SHIM, '-o', into, '-ldl']
  const { status, stderr } = spawnSync('cc', words, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`the module of the tests does not compile: ${stderr}`)
  return into
}
