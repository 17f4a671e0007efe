// The Python package in a folder of a stranger's: its own tests, against a real installation and a scripted gateway, and what it
// encrypts and signs, which the vault reads.
import { createPrivateKey, createPublicKey, type JsonWebKey } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { publicPart } from '../../producers/client/client-file.ts'
import { ROLES } from '../../src/job/choices.ts'
import { verifyCompact } from '../../src/job/envelope/signature.ts'
import { openJweCard } from '../../src/vault/capture/open-card.ts'
import { importPublicJwk } from '../../src/vault/client-key.ts'
import { jweTypeOf } from '../../src/vault/jwe-key.ts'
import { type Caller, openGatewayFor } from '../producers/gateway/bundle.ts'
import { describeStore } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { programOf } from './installed-client.ts'
import { type InstalledPython, installPython, missingPython } from './installed-python.ts'

const tests = fileURLToPath(new URL('../../clients/python/tests', import.meta.url))
const vectors = fileURLToPath(new URL('../../clients/vectors', import.meta.url))

describe.skipIf(missingPython().length > 0)('the Python package', () => {
  let python: InstalledPython
  beforeAll(async () => {
    python = await installPython()
  })
  afterAll(() => python?.remove())

  async function run(program: string, words: string[] = [], env: Record<string, string> = {}): Promise<string> {
    const child = python.start(program, words, { env })
    const { code } = await child.exit
    expect([code, child.stderr()]).toEqual([0, expect.stringMatching(/^$|\nOK\n$/)])
    return child.stdout()
  }

  it.each(['test_transport.py', 'test_keys.py'])('passes %s', async name => {
    await run(join(tests, name))
  })

  it('encrypts and signs what the vault reads, and asks for every role', async () => {
    const program = join(python.folder, 'make.py')
    writeFileSync(program, MAKE)
    const made = JSON.parse(await run(program, [vectors]))
    const read = (name: string) => JSON.parse(readFileSync(join(vectors, `${name}.json`), 'utf8'))
    const { card, keys } = read('capture-keys')
    for (const [name, { private_jwk: jwk, thumbprint: kid }] of Object.entries<Given>(keys)) {
      const privateKey = createPrivateKey({ key: jwk, format: 'jwk' })
      const type = jweTypeOf(createPublicKey(privateKey)) ?? 'jwe-rsa'
      const opened = openJweCard(made.cards[name], { alias: 'a', type, privateKey, kid })
      expect(opened).toHaveProperty('reveal')
      if ('reveal' in opened) expect(opened.reveal()).toBe(card)
    }
    for (const [alg, jwk] of Object.entries<JsonWebKey>(read('keys').signing_keys)) {
      const { alg: known, key } = importPublicJwk(publicPart({ ...jwk }))
      expect(known).toBe(alg)
      expect(verifyCompact(made.signed[alg], { alg: known, publicKey: key })).toBe(true)
    }
    expect(made.roles).toEqual(ROLES)
  })

  describeStore('at a real gateway', engine => {
    let installation: Installation
    let gateway: Caller

    beforeAll(async () => {
      installation = await openInstallation(engine)
      await installation.openWorkers()
      gateway = await openGatewayFor(installation)
    })
    afterAll(async () => {
      await gateway?.close()
      await installation?.close()
    })

    it('passes test_gateway.py', async () => {
      await run(join(tests, 'test_gateway.py'), [], { GATEWAY_URL: gateway.url, CLIENT_FILE: installation.clientFile })
    })

    it('makes its first token with the program of docs/upstream.md', async () => {
      const program = join(python.folder, 'first_token.py')
      writeFileSync(program, programOf('first_token.py'))
      const env = { BASE_URL: gateway.url, CLIENT_FILE: installation.clientFile }
      expect(await run(program, [], env)).toMatch(/^t\w+ stands for a card that ends in 1111, ACTIVE\n$/)
    })
  })
})

interface Given {
  private_jwk: JsonWebKey
  thumbprint: string
}

const MAKE = `
import json, sys
from pathlib import Path
from tokenmill_client import authorization, jwe, jws

capture, signing = (json.loads((Path(sys.argv[1]) / f"{name}.json").read_text()) for name in ("capture-keys", "keys"))
cards = {
    name: jwe.encrypt(capture["card"].encode(), jws.import_public(key["public_jwk"]), key["thumbprint"])
    for name, key in capture["keys"].items()
}
signed = {
    alg: jws.sign(jws.import_signing(jwk), "JWT", signing["claims"])
    for alg, jwk in signing["signing_keys"].items()
}
print(json.dumps({"cards": cards, "signed": signed, "roles": authorization.ROLES}))
`
