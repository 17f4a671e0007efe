// The other side of a migration: its OpenPGP key and its signature over a pack, made by gpg, or by the library if gpg
// isn't installed.
import { spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMessage, generateKey, sign } from 'openpgp'

export interface Counterparty {
  /** The path of the public key. */
  publicKey: string
  /** Signs a file; returns the path of the detached signature. */
  sign(file: string): Promise<string>
  close(): Promise<void>
}

export const hasGpg = spawnSync('gpg', ['--version']).status === 0

/** Opens gpg with its key and agent in a new folder, whose path is short because the path of a socket must be. */
export async function openGpg(name: string): Promise<Counterparty> {
  const home = await mkdtemp(join(tmpdir(), 'gpg-'))
  await chmod(home, 0o700)
  const gpg = (...words: string[]) => {
    const { status, stderr, stdout } = spawnSync('gpg', [
      '--homedir',
      home,
      '--batch',
      '--yes',
      '--passphrase',
      '',
      ...words,
    ])
    if (status !== 0) throw new Error(`gpg ended with ${status}: ${stderr}`)
    return stdout
  }
  gpg('--quick-generate-key', name, 'ed25519', 'sign', 'never')
  const publicKey = join(home, 'public.asc')
  await writeFile(publicKey, gpg('--armor', '--export'))
  return {
    publicKey,
    async sign(file) {
      gpg('--armor', '--detach-sign', file)
      return `${file}.asc`
    },
    async close() {
      spawnSync('gpgconf', ['--homedir', home, '--kill', 'all'])
      await rm(home, { recursive: true, force: true })
    },
  }
}

export async function openLibrary(name: string): Promise<Counterparty> {
  const home = await mkdtemp(join(tmpdir(), 'pgp-'))
  const { privateKey, publicKey } = await generateKey({ type: 'curve25519', userIDs: [{ name }], format: 'object' })
  const path = join(home, 'public.asc')
  await writeFile(path, publicKey.armor())
  return {
    publicKey: path,
    async sign(file) {
      const message = await createMessage({ binary: new Uint8Array(await readFile(file)) })
      const signature = join(home, 'signature.asc')
      await writeFile(signature, await sign({ message, signingKeys: privateKey, detached: true }))
      return signature
    },
    close: () => rm(home, { recursive: true, force: true }),
  }
}
