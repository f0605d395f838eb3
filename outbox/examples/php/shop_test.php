<?php
require __DIR__ . '/shop.php';

function check(bool $ok, string $what): void
{
    if (!$ok) {
        fwrite(STDERR, "FAIL: $what\n");
        exit(1);
    }
}

function wait(PDO $db, string $message, string $wanted): void
{
    for ($deadline = microtime(true) + 120; ($state = state($db, $message)) !== $wanted; usleep(50_000)) {
        check(microtime(true) < $deadline, "$message is $state, not $wanted");
    }
}

function refused(callable $work, string $says): void
{
    try {
        $work();
    } catch (PDOException $e) {
        check(str_contains($e->getMessage(), $says), "$says is said: {$e->getMessage()}");
        return;
    }
    check(false, "nothing says $says");
}

$db = connect(getenv('SHOP_DB'));
$stage = $db->prepare('INSERT INTO outbox_messages(id, type, payload) VALUES (?, ?, ?)');

transaction($db, function () use ($stage) {
    $stage->execute(['text', 'order-paid', '{"order": 1001, "note": "schön 📯"}']);
    $stage->execute(['nul', 'order-paid', "a\0b"]);
    $stage->execute(['empty', 'order-paid', '']);
    $stage->execute(['huge', 'order-paid', str_repeat('x', 2 << 20)]);
    $stage->execute(['no-json', 'order-shipped', 'on its way']);
    $stage->execute(['breaks', 'order-shipped', '{"order": "1001"}']);
    foreach (['bytes' => "\x00\xff\xfe\x80\x7f\"\r\n", 'no-bytes' => ''] as $id => $bytes) {
        $stage->bindValue(1, $id);
        $stage->bindValue(2, 'order-paid');
        $stage->bindValue(3, $bytes, PDO::PARAM_LOB);
        $stage->execute();
    }
});

$db->exec('INSERT INTO orders(id) VALUES (1)');
$paid = pay($db, 1);
foreach (['text', 'nul', 'empty', 'huge', 'bytes', 'no-bytes', $paid] as $message) {
    wait($db, $message, 'dispatched');
}
check($db->query('SELECT paid FROM orders WHERE id = 1')->fetchColumn() == 1, 'the order is paid');

foreach (['no-json', 'breaks'] as $message) {
    wait($db, $message, 'dead-letter');
    $error = $db->query("SELECT last_error FROM outbox_status WHERE id = '$message'")->fetchColumn();
    check(preg_match('#must be JSON|/order#', $error) === 1, "$message says why: $error");
}

try {
    transaction($db, function () use ($stage) {
        $stage->execute(['rolled-back', 'order-paid', '{}']);
        throw new RuntimeException();
    });
} catch (RuntimeException) {
}
check(state($db, 'rolled-back') === null, 'a rollback stages nothing');

foreach (json_decode(file_get_contents(__DIR__ . '/../refusals.json'), true) as $refusal) {
    refused(fn() => $db->exec($refusal['sql']), $refusal['says']);
}
refused(fn() => $stage->execute(['wrong', 'order-paid', null]), 'posthorn[bad-payload]: ');
$stage->bindValue(1, 'wrong');
$stage->bindValue(2, 'order-paid');
$stage->bindValue(3, 7, PDO::PARAM_INT);
refused(fn() => $stage->execute(), 'posthorn[bad-payload]: ');

echo "ok\n";
