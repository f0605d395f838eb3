<?php
// A shop that tells others what it commits. All that it needs is PDO and the outbox in its database.

function connect(string $path): PDO
{
    return new PDO("sqlite:$path", options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_TIMEOUT => 5]);
}

/** Runs some work in one transaction. IMMEDIATE waits for another writer; PDO's own beginTransaction would fail at once after a read. */
function transaction(PDO $db, callable $work): mixed
{
    $db->exec('BEGIN IMMEDIATE');
    try {
        $result = $work();
        $db->exec('COMMIT');
        return $result;
    } catch (Throwable $e) {
        $db->exec('ROLLBACK');
        throw $e;
    }
}

/** Marks an order as paid and stages the fact, in one transaction: both are committed, or neither. Returns the message's id. */
function pay(PDO $db, int $order): string
{
    return transaction($db, function () use ($db, $order) {
        $db->prepare('UPDATE orders SET paid = 1 WHERE id = ?')->execute([$order]);
        $db->prepare('INSERT INTO outbox_messages(type, payload) VALUES (?, ?)')->execute(['order-paid', json_encode(['order' => $order])]);
        $row = $db->prepare('SELECT id FROM outbox_messages WHERE seq = ?');
        $row->execute([$db->lastInsertId()]);
        return $row->fetchColumn();
    });
}

/** Returns how a message stands, for the shop's own screens: pending, processing, dispatched or dead-letter. */
function state(PDO $db, string $message): ?string
{
    $row = $db->prepare("SELECT state FROM outbox_status WHERE tenant = 'main' AND id = ?");
    $row->execute([$message]);
    return $row->fetchColumn() ?: null;
}
