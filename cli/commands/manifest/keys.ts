// The public keys by which the commands about manifests check signatures: of the client's file, and of JWKs that are
// named.
import { createPublicKey } from 'node:crypto'
import { dirname, join, resolve } from 'node:path'
import { readClientFile, readSigningKey } from '../../../producers/client/client-file.ts'
import type { VerifyKey } from '../../../producers/detached-signature.ts'
import { ConfigError } from '../../../src/config.ts'
import { importPublicJwk } from '../../../src/vault/client-key.ts'
import type { Session } from '../../open/open.ts'
import { readJwkFile } from '../client/jwk-file.ts'

export interface KeyOptions {
  client?: string
  key?: string[]
}

/** The keys that are named with `--key`, and that of the client's file unless only keys are named. */
export async function keysOf(
  { config }: Pick<Session, 'config'>,
  { client, key = [] }: KeyOptions,
): Promise<VerifyKey[]> {
  const named = await Promise.all(key.map(keyOfJwk))
  if (client === undefined && named.length > 0) return named
  return [await keyOfClient(client ?? join(config.dataDir, 'dev-client.json')), ...named]
}

export async function keyOfJwk(path: string): Promise<VerifyKey> {
  const { kid, alg, key } = importPublicJwk(await readJwkFile(path))
  return { kid, alg, publicKey: key }
}

async function keyOfClient(path: string): Promise<VerifyKey> {
  const file = await readClientFile(path)
  if (file.signing_key_file === null)
    throw new ConfigError(`${path}: signing_key_file names no file; give the public key with --key`)
  const { kid, alg, privateKey } = await readSigningKey(resolve(dirname(path), file.signing_key_file), file.client_id)
  return { kid, alg, publicKey: createPublicKey(privateKey) }
}
