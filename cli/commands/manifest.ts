// `tokenmill manifest verify FILE`: checks a manifest's signature, and compares it with the results file and, if that
// still exists, the input file.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { dirname, join, resolve } from 'node:path'
import { readClientFile, readSigningKey } from '../../producers/client-file.ts'
import { verifyDetached } from '../../producers/detached-signature.ts'
import { CHECKS, type Verification, verifyManifest } from '../../producers/migrate/manifest.ts'
import { ConfigError } from '../../src/config.ts'
import type { Algorithm } from '../../src/job/envelope/signature.ts'
import { importPublicJwk } from '../../src/vault/client-key.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { withSession } from '../open/open.ts'
import { print, type Terminal } from '../terminal.ts'
import { readJwkFile } from './client/jwk-file.ts'

interface Options extends JsonOption {
  client?: string
  key?: string
}

const SAYS: Record<(typeof CHECKS)[number], string> = {
  signature: 'signature of the client',
  rows: 'rows are the sum of the counts',
  results_digest: 'digest of the results file',
  results_counts: 'counts of the results file',
  input_digest: 'digest of the input file',
  rejects_digest: 'digest of the file of rejected rows',
  return_digest: 'digest of the file that goes back',
}

export function verify(terminal: Terminal, file: string, options: Options): Promise<void> {
  return withSession(terminal, async ({ config }) => {
    const clientFile = options.client ?? join(config.dataDir, 'dev-client.json')
    const key = options.key === undefined ? await keyOfClient(clientFile) : await keyOfJwk(options.key)
    const { manifest, checks, holds } = await verifyManifest(file, (bytes, jws) => verifyDetached(bytes, jws, [key]))
    const value = { file, batch_id: manifest.batch_id, rows: manifest.rows, counts: manifest.counts, checks, holds }
    print(terminal, options, value, textOf(checks))
    if (!holds) throw new Stop(`${file}: at least one check failed`, EXIT.failure)
  })
}

function textOf(checks: Verification['checks']): string {
  return CHECKS.map(check => `${checks[check].padEnd(6)}  ${SAYS[check]}`).join('\n')
}

interface Key {
  kid: string
  alg: Algorithm
  publicKey: KeyObject
}

async function keyOfJwk(path: string): Promise<Key> {
  const { kid, alg, key } = importPublicJwk(await readJwkFile(path))
  return { kid, alg, publicKey: key }
}

async function keyOfClient(path: string): Promise<Key> {
  const file = await readClientFile(path)
  if (file.signing_key_file === null)
    throw new ConfigError(`${path}: signing_key_file names no file; give the public key with --key`)
  const { kid, alg, privateKey } = await readSigningKey(resolve(dirname(path), file.signing_key_file), file.client_id)
  return { kid, alg, publicKey: createPublicKey(privateKey) }
}
