// Standard input says what to do: check the RFC's vector, seal as the client does, or open what Python sealed.

import { text } from 'node:stream/consumers';

import { Aes128Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';

import { sealParts } from '../../client/sealing.js';

const suite = new CipherSuite({ kem: new DhkemP256HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });
const raw = (hex) => Uint8Array.from(Buffer.from(hex, 'hex')).buffer;
const hex = (bytes) => Buffer.from(bytes).toString('hex');

async function keyPair({ skR, pkR }) {
  const point = Buffer.from(pkR, 'hex');
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    d: Buffer.from(skR, 'hex').toString('base64url'),
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  };
  const algorithm = { name: 'ECDH', namedCurve: 'P-256' };
  return {
    privateKey: await crypto.subtle.importKey('jwk', jwk, algorithm, true, ['deriveBits']),
    publicKey: await suite.kem.deserializePublicKey(raw(pkR)),
  };
}

async function vector(given) {
  const recipientKey = await keyPair(given);
  const recipient = await suite.createRecipientContext({ recipientKey, enc: raw(given.enc), info: raw(given.info) });
  const pt = hex(await recipient.open(raw(given.ct), raw(given.aad)));
  const ekm = await suite.kem.deriveKeyPair(raw(given.ikmE));
  const sender = await suite.createSenderContext({ recipientPublicKey: recipientKey.publicKey, info: raw(given.info), ekm });
  return { pt, enc: hex(sender.enc), ct: hex(await sender.seal(raw(given.pt), raw(given.aad))) };
}

async function open({ part, accountId, requestId, index, ...key }) {
  const whole = Buffer.from(part.ciphertext, 'base64url');
  const header = whole.subarray(0, 17);
  const entries = ['firestore-outbox sealed part', header, accountId, requestId, `${part.keyVersion}`, `${index}`];
  const info = Buffer.concat(
    entries.map((entry) => Buffer.from(entry)).flatMap((entry) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(entry.length);
      return [length, entry];
    }),
  );
  const enc = Uint8Array.from(whole.subarray(17, 82)).buffer;
  const clear = await suite.open(
    { recipientKey: await keyPair(key), enc, info: Uint8Array.from(info).buffer },
    Uint8Array.from(whole.subarray(82)).buffer,
  );
  return { part: JSON.parse(Buffer.from(clear).toString()) };
}

const given = JSON.parse(await text(process.stdin));
if (given.vector) console.log(JSON.stringify(await vector(given.vector)));
else if (given.open) console.log(JSON.stringify(await open(given.open)));
else console.log(JSON.stringify({ parts: await sealParts(given.seal.parts, given.seal) }));
